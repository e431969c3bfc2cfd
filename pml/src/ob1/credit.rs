//! Flow control as arithmetic: what each sender may still send, and the receiver's budget behind all of that.
//!
//! A sender holds two credits per receiver: envelopes, and bytes of eager payload. Every envelope
//! costs one; eager payload costs its length. Without byte credit a message goes as an envelope
//! alone (rendezvous). Without envelope credit the sender keeps it, in order.
//!
//! The receiver has one [`Account`] per sender and one [`Budget`] for all of them. Each grant takes from the budget.
//! What arrives and finds its receive gives its share back; what is kept unexpected gives it back when it is received.
//! So the sum of all that senders may still send and all that is kept never passes the budget (plus
//! [`Window::INITIAL`] for each sender, which it has from the start).
//!
//! A sender whose window cannot be refilled is *starved*: it may hold envelopes back.
//!
//! Nothing here knows a peer, a transport or a message: [`Accounts`] finds an account by a peer's index, and what is to
//! be done comes back as a value.

use crate::peers::PeerIndex;

/// A window is refilled to this, as far as the budget allows.
const FULL: Window = Window {
    envelopes: 2048,
    bytes: 2 << 20,
};

/// Where the envelopes' part of a packed grant begins.
const ENVELOPE_SHIFT: u32 = 40;

/// An amount of credit: envelopes, and bytes of eager payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    pub envelopes: i64,
    pub bytes: i64,
}

impl Window {
    pub(super) const NOTHING: Self = Self {
        envelopes: 0,
        bytes: 0,
    };

    /// What every sender has before its receiver grants anything. Part of the wire protocol.
    pub(super) const INITIAL: Self = Self {
        envelopes: 64,
        bytes: 64 << 10,
    };

    /// Returns what is left after a message of `bytes`.
    #[inline(always)]
    pub(super) const fn after(self, bytes: usize) -> Self {
        Self {
            envelopes: self.envelopes - 1,
            bytes: self.bytes - bytes as i64,
        }
    }

    /// Whether one of the two is below that of `other`.
    #[inline(always)]
    pub(super) const fn is_below(self, other: Self) -> bool {
        self.envelopes < other.envelopes || self.bytes < other.bytes
    }

    /// Whether a message whose eager payload is `bytes` may be sent.
    #[inline(always)]
    pub(super) const fn covers(self, bytes: usize) -> bool {
        self.envelopes > 0 && self.bytes >= bytes as i64
    }

    /// Whether the next message could not go at once, whatever its length.
    pub(super) const fn is_spent(self) -> bool {
        self.envelopes <= 0 || self.bytes <= 0
    }

    /// Adds a grant, which may be a peer's: no number of them overflows.
    pub(super) const fn add(&mut self, other: Self) {
        self.envelopes = self.envelopes.saturating_add(other.envelopes);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }

    const fn subtract(&mut self, other: Self) {
        self.envelopes -= other.envelopes;
        self.bytes -= other.bytes;
    }

    /// Returns a half of each, and at least one.
    fn half(self) -> Self {
        Self {
            envelopes: (self.envelopes / 2).max(1),
            bytes: (self.bytes / 2).max(1),
        }
    }

    /// Packs a grant into the argument of a control packet.
    pub(super) const fn pack(self) -> u64 {
        ((self.envelopes as u64) << ENVELOPE_SHIFT) | self.bytes as u64
    }

    /// Returns the grant that was packed into `argument`.
    pub(super) const fn unpack(argument: u64) -> Self {
        Self {
            envelopes: (argument >> ENVELOPE_SHIFT) as i64,
            bytes: (argument & ((1 << ENVELOPE_SHIFT) - 1)) as i64,
        }
    }
}

/// Whether a sender's window is refilled.
#[derive(Debug, Clone, Copy)]
enum State {
    /// The sender is not in contact yet, and was granted nothing.
    Closed,
    /// The sender is alive, and its window is refilled.
    Open,
    /// The sender is gone. What it was granted still bounds its last messages.
    Gone,
}

/// One sender's account at a receiver.
#[derive(Debug, Clone, Copy)]
pub(super) struct Account {
    /// What the sender may still send, as far as this rank has granted it.
    pub granted: Window,
    /// What the budget has set aside for it. It follows `granted` when a window is refilled, not per message.
    pub reserved: Window,
    /// The account is in the list of those whose `reserved` is behind.
    pub unsettled: bool,
    /// The window could not be refilled: the budget is spent, and the sender may hold envelopes back.
    pub starved: bool,
    state: State,
}

impl Account {
    pub(super) const NEW: Self = Self {
        granted: Window::NOTHING,
        reserved: Window::NOTHING,
        unsettled: false,
        starved: false,
        state: State::Closed,
    };

    /// Whether the sender has sent more than it was granted.
    pub(super) const fn is_overdrawn(&self) -> bool {
        self.granted.is_below(Window::NOTHING)
    }

    /// Whether its window is refilled.
    const fn is_open(&self) -> bool {
        matches!(self.state, State::Open)
    }
}

/// Where the accounts are.
pub(super) trait Accounts {
    /// Returns the account of a peer, where there is such a peer.
    fn account(&mut self, peer: PeerIndex) -> Option<&mut Account>;
}

/// What a message did to the account of its sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Charged {
    /// The window has enough left.
    Ample,
    /// The window is to be refilled.
    Low,
    /// The sender has sent more than it was granted.
    Overdrawn,
}

/// What a refill comes to. The caller sends the grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refill {
    /// What the sender is granted.
    pub grant: Option<Window>,
    /// The sender is starved from now on: receives that wait for it ask for their messages.
    pub starves: bool,
}

/// The receiver's budget: what is neither granted nor kept.
#[derive(Debug)]
pub(super) struct Budget {
    left: Window,
    total: Window,
    /// Below this a window is refilled.
    refill_below: Window,
    /// Senders whose windows wait for the budget.
    starving: Vec<PeerIndex>,
    /// Senders who have used something of their windows that is still set aside for them.
    unsettled: Vec<PeerIndex>,
}

impl Budget {
    /// A budget of `payload` bytes, and as many envelopes as fit into `headers` bytes at `per_envelope` each.
    pub(super) const fn new(payload: usize, headers: usize, per_envelope: usize) -> Self {
        let total = Window {
            envelopes: (headers / per_envelope) as i64,
            bytes: payload as i64,
        };
        Self {
            left: total,
            total,
            refill_below: Window {
                envelopes: Window::INITIAL.envelopes / 2,
                bytes: Window::INITIAL.bytes / 2,
            },
            starving: Vec::new(),
            unsettled: Vec::new(),
        }
    }

    /// Returns what is neither granted nor kept.
    pub(super) const fn left(&self) -> Window {
        self.left
    }

    /// Returns the limit below which a window is refilled.
    #[inline(always)]
    pub(super) const fn refill_below(&self) -> Window {
        self.refill_below
    }

    /// Returns the senders who may hold envelopes back.
    pub(super) fn starving(&self) -> &[PeerIndex] {
        &self.starving
    }

    /// Opens the account of a sender that came into contact; one that is gone already has the initial window for its last
    /// messages, and no more.
    pub(super) const fn open(&mut self, account: &mut Account, alive: bool) {
        account.granted = Window::INITIAL;
        if alive {
            account.state = State::Open;
            account.reserved = Window::INITIAL;
            self.left.subtract(Window::INITIAL);
        } else {
            account.state = State::Gone;
        }
    }

    /// Closes the account of a sender that is gone: the budget gets its window back. What it was granted stays the bound of
    /// its last messages, and what of them has to be kept is charged as it comes.
    pub(super) fn close(&mut self, accounts: &mut impl Accounts, peer: PeerIndex) {
        let Some(account) = accounts.account(peer) else {
            return;
        };
        account.state = State::Gone;
        account.starved = false;
        self.left.add(account.reserved);
        account.reserved = Window::NOTHING;
        self.starving.retain(|other| *other != peer);
    }

    /// Charges a message with `bytes` of eager payload to the account of its sender.
    #[inline]
    pub(super) fn charge(
        &mut self,
        account: &mut Account,
        peer: PeerIndex,
        bytes: usize,
    ) -> Charged {
        if !account.unsettled {
            account.unsettled = true;
            self.unsettled.push(peer);
        }
        account.granted = account.granted.after(bytes);
        if account.is_overdrawn() {
            Charged::Overdrawn
        } else if account.is_open() && account.granted.is_below(self.refill_below) {
            Charged::Low
        } else {
            Charged::Ample
        }
    }

    /// Takes what a message of `bytes` costs that is kept unexpected.
    #[inline]
    pub(super) const fn keep(&mut self, bytes: usize) {
        self.left = self.left.after(bytes);
    }

    /// Gives back what a kept message of `bytes` took.
    #[inline]
    pub(super) const fn release(&mut self, bytes: usize) {
        self.left.envelopes += 1;
        self.left.bytes += bytes as i64;
    }

    /// Returns what a full window is among so many senders: a fair part of the budget where they are many.
    fn full_window(&self, senders: usize) -> Window {
        let share = 2 * senders.max(1) as i64;
        Window {
            envelopes: FULL.envelopes.min(self.total.envelopes / share).max(1),
            bytes: FULL.bytes.min(self.total.bytes / share).max(1),
        }
    }

    /// Whether a refill of a starved sender pays: grants in small change would cost a packet each.
    pub(super) fn can_feed(&self, senders: usize) -> bool {
        let full = self.full_window(senders);
        self.left.envelopes >= full.envelopes / 4 || self.left.bytes >= full.bytes / 4
    }

    /// Sets aside for each sender what its window is now. In between, the budget counts less as free than there is,
    /// never more. Only the accounts that changed are looked at.
    fn settle(&mut self, accounts: &mut impl Accounts) {
        while let Some(peer) = self.unsettled.pop() {
            let Some(account) = accounts.account(peer) else {
                continue;
            };
            account.unsettled = false;
            // The budget has the windows of those who are gone already.
            if account.is_open() {
                self.left.add(account.reserved);
                self.left.subtract(account.granted);
                account.reserved = account.granted;
            }
        }
    }

    /// Grants a sender, one of so many, as much as its window lacks and the budget has.
    #[cold]
    pub(super) fn refill(
        &mut self,
        accounts: &mut impl Accounts,
        peer: PeerIndex,
        senders: usize,
    ) -> Refill {
        const NOTHING: Refill = Refill {
            grant: None,
            starves: false,
        };
        let full = self.full_window(senders);
        // At least one: a window of one is low when it is spent.
        self.refill_below = full.half();
        self.settle(accounts);
        let Some(account) = accounts.account(peer) else {
            return NOTHING;
        };
        if !account.is_open() {
            return NOTHING;
        }
        let lacks = Window {
            envelopes: (full.envelopes - account.granted.envelopes).max(0),
            bytes: (full.bytes - account.granted.bytes).max(0),
        };
        let grant = Window {
            envelopes: lacks.envelopes.min(self.left.envelopes.max(0)),
            bytes: lacks.bytes.min(self.left.bytes.max(0)),
        };
        let worth_it = grant.envelopes >= lacks.envelopes.min(full.envelopes / 4)
            && grant.envelopes > 0
            || grant.bytes >= full.bytes / 4;
        if worth_it {
            account.granted.add(grant);
            account.reserved = account.granted;
            self.left.subtract(grant);
        }
        let was_starved = account.starved;
        account.starved = grant.envelopes < lacks.envelopes;
        match (was_starved, account.starved) {
            (false, true) => self.starving.push(peer),
            (true, false) => self.starving.retain(|other| *other != peer),
            _ => {}
        }
        Refill {
            grant: worth_it.then_some(grant),
            starves: account.starved && !was_starved,
        }
    }

    /// Panics where the budget and the accounts disagree: what is neither granted nor kept is in the budget, to the last
    /// envelope and byte.
    #[cfg(test)]
    pub(super) fn audit<'a>(
        &self,
        accounts: impl Iterator<Item = &'a Account>,
        kept: impl Iterator<Item = usize>,
    ) {
        let mut sum = self.left;
        let mut flagged = 0;
        for account in accounts {
            sum.add(account.reserved);
            let settled = account.reserved == account.granted || !account.is_open();
            assert!(account.unsettled || settled, "{account:?}");
            flagged += usize::from(account.unsettled);
        }
        for bytes in kept {
            sum.envelopes += 1;
            sum.bytes += bytes as i64;
        }
        assert_eq!(self.unsettled.len(), flagged, "unsettled accounts");
        assert_eq!(sum, self.total);
    }

    /// Returns how many accounts the next refill looks at.
    #[cfg(test)]
    pub(super) fn unsettled(&self) -> usize {
        self.unsettled.len()
    }

    #[cfg(test)]
    pub(super) fn total(&self) -> Window {
        self.total
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    impl Accounts for Vec<Account> {
        fn account(&mut self, peer: PeerIndex) -> Option<&mut Account> {
            self.get_mut(peer.index())
        }
    }

    #[test]
    fn a_window_is_spent_where_either_part_is() {
        for (envelopes, bytes, spent) in [(1, 1, false), (0, 1, true), (1, 0, true), (-1, 9, true)]
        {
            let window = Window { envelopes, bytes };
            assert_eq!(window.is_spent(), spent, "{window:?}");
        }
        let half = |envelopes, bytes| {
            let half = Window { envelopes, bytes }.half();
            (half.envelopes, half.bytes)
        };
        assert_eq!((half(9, 100), half(1, 0)), ((4, 50), (1, 1)));
    }

    /// A quarter of a full window is enough, of either part.
    #[test]
    fn a_starved_sender_is_fed_once_a_quarter_is_free() {
        let mut budget = Budget::new(1 << 30, 10_000, 10);
        let full = budget.full_window(1);
        let quarter = (full.envelopes / 4, full.bytes / 4);
        for (envelopes, bytes, feeds) in [
            (quarter.0, 0, true),
            (0, quarter.1, true),
            (quarter.0 - 1, quarter.1 - 1, false),
            (full.envelopes, full.bytes, true),
        ] {
            budget.left = Window { envelopes, bytes };
            assert_eq!(budget.can_feed(1), feeds, "{:?} of {full:?}", budget.left);
        }
    }

    /// A receiver and its senders, of whom each knows what it was granted.
    struct World {
        budget: Budget,
        accounts: Vec<Account>,
        /// What each sender may still send.
        credit: Vec<Window>,
        kept: Vec<usize>,
    }

    impl World {
        fn new(senders: usize, bytes: usize, envelopes: usize) -> Self {
            let mut budget = Budget::new(bytes, envelopes * 10, 10);
            let mut accounts = vec![Account::NEW; senders];
            for account in &mut accounts {
                budget.open(account, true);
            }
            Self {
                budget,
                accounts,
                credit: vec![Window::INITIAL; senders],
                kept: Vec::new(),
            }
        }

        fn refill(&mut self, sender: u32) -> Refill {
            let senders = self.accounts.len();
            let refill = self
                .budget
                .refill(&mut self.accounts, PeerIndex(sender), senders);
            if let Some(grant) = refill.grant {
                assert!(grant.envelopes >= 0 && grant.bytes >= 0, "{grant:?}");
                self.credit[sender as usize].add(grant);
            }
            refill
        }

        /// A sender that keeps to its credit sends a message, which is kept or received at once.
        fn send(&mut self, sender: u32, bytes: usize, keep: bool) -> bool {
            let credit = &mut self.credit[sender as usize];
            if credit.envelopes <= 0 {
                return false;
            }
            // Without byte credit its envelope goes alone.
            let bytes = if credit.covers(bytes) { bytes } else { 0 };
            *credit = credit.after(bytes);
            let account = &mut self.accounts[sender as usize];
            let charged = self.budget.charge(account, PeerIndex(sender), bytes);
            assert_ne!(charged, Charged::Overdrawn);
            // What is kept takes its part of the budget before anything of it is granted again.
            if keep {
                self.budget.keep(bytes);
                self.kept.push(bytes);
            }
            if charged == Charged::Low {
                self.refill(sender);
            }
            true
        }

        fn receive_kept(&mut self) {
            if let Some(bytes) = self.kept.pop() {
                self.budget.release(bytes);
                for sender in self.budget.starving().to_vec() {
                    if self.budget.can_feed(self.accounts.len()) {
                        self.refill(sender.0);
                    }
                }
            }
        }

        fn audit(&self) {
            self.budget
                .audit(self.accounts.iter(), self.kept.iter().copied());
            // What accounts have used counts twice until they are settled: as set aside, and as kept.
            let behind = |account: &Account| account.reserved.envelopes - account.granted.envelopes;
            let open = self.accounts.iter().filter(|account| account.is_open());
            let left = self.budget.left().envelopes + open.map(behind).sum::<i64>();
            // Only the initial windows can be beyond the budget.
            let beyond = Window::INITIAL.envelopes * self.accounts.len() as i64;
            assert!(left >= -beyond, "{left} envelopes are left");
        }
    }

    #[test]
    fn grants_travel_whole() {
        let grant = Window {
            envelopes: 2048,
            bytes: (1 << ENVELOPE_SHIFT) - 1,
        };
        assert_eq!(Window::unpack(grant.pack()), grant);
        assert_eq!(grant.pack(), 2048 << 40 | 0xff_ffff_ffff);
    }

    #[test]
    fn a_window_is_refilled_when_half_of_it_is_used() {
        let mut world = World::new(1, 64 << 20, 1 << 16);
        let mut account = world.accounts[0];
        for message in 1..=32 {
            let charged = world.budget.charge(&mut account, PeerIndex(0), 8);
            assert_eq!(charged, Charged::Ample, "{message}");
        }
        assert_eq!(
            world.budget.charge(&mut account, PeerIndex(0), 8),
            Charged::Low
        );
        world.accounts[0] = account;
        let refill = world.refill(0);
        let sent = Window {
            envelopes: 33,
            bytes: 33 * 8,
        };
        let grant = Window {
            envelopes: FULL.envelopes - Window::INITIAL.envelopes + sent.envelopes,
            bytes: FULL.bytes - Window::INITIAL.bytes + sent.bytes,
        };
        assert_eq!(
            refill,
            Refill {
                grant: Some(grant),
                starves: false
            }
        );
        assert_eq!(world.accounts[0].granted, FULL);
        assert_eq!(world.budget.refill_below(), FULL.half());
        assert_eq!(world.budget.unsettled(), 0);
        world.audit();
    }

    #[test]
    fn bytes_alone_make_a_window_low() {
        let mut world = World::new(1, 64 << 20, 1 << 16);
        let account = &mut world.accounts[0];
        assert_eq!(
            world.budget.charge(account, PeerIndex(0), 32 << 10),
            Charged::Ample
        );
        assert_eq!(world.budget.charge(account, PeerIndex(0), 1), Charged::Low);
    }

    #[test]
    fn a_sender_past_its_window_is_overdrawn() {
        let mut world = World::new(2, 64 << 20, 1 << 16);
        let account = &mut world.accounts[0];
        let whole = Window::INITIAL.bytes as usize;
        assert_eq!(
            world.budget.charge(account, PeerIndex(0), whole),
            Charged::Low
        );
        assert_eq!(
            world.budget.charge(account, PeerIndex(0), 1),
            Charged::Overdrawn
        );
        // One that is gone has what it was granted, and is not refilled.
        world.budget.close(&mut world.accounts, PeerIndex(1));
        for _ in 0..Window::INITIAL.envelopes {
            let account = &mut world.accounts[1];
            assert_eq!(
                world.budget.charge(account, PeerIndex(1), 0),
                Charged::Ample
            );
        }
        let refill = world.refill(1);
        assert_eq!(
            refill,
            Refill {
                grant: None,
                starves: false
            }
        );
        let account = &mut world.accounts[1];
        assert_eq!(
            world.budget.charge(account, PeerIndex(1), 0),
            Charged::Overdrawn
        );
        // Nor has a stranger anything.
        let mut stranger = Account::NEW;
        assert_eq!(
            world.budget.charge(&mut stranger, PeerIndex(7), 0),
            Charged::Overdrawn
        );
    }

    #[test]
    fn a_spent_budget_starves_and_what_comes_back_feeds() {
        let mut world = World::new(1, 1 << 20, 128);
        while world.send(0, 0, true) {}
        assert_eq!(world.kept.len(), 128, "the whole budget");
        assert!(world.accounts[0].starved);
        assert_eq!(world.budget.starving(), [PeerIndex(0)]);
        world.audit();
        // A quarter of its window is what a grant is worth.
        for _ in 0..15 {
            world.receive_kept();
            assert!(!world.send(0, 0, true));
        }
        world.receive_kept();
        assert_eq!(world.credit[0].envelopes, 16);
        while !world.kept.is_empty() {
            world.receive_kept();
        }
        assert!(!world.accounts[0].starved);
        assert!(world.budget.starving().is_empty());
        world.audit();
    }

    #[test]
    fn starvation_is_reported_once() {
        let mut world = World::new(1, 1 << 20, 64);
        while world.credit[0].envelopes > 30 {
            world.credit[0].envelopes -= 1;
            let account = &mut world.accounts[0];
            world.budget.charge(account, PeerIndex(0), 0);
            world.budget.keep(0);
            world.kept.push(0);
        }
        assert!(world.refill(0).starves || world.accounts[0].starved);
        assert!(!world.refill(0).starves);
        assert_eq!(world.budget.starving().len(), 1);
    }

    #[test]
    fn many_senders_share_the_budget() {
        let mut world = World::new(64, 64 << 20, 16 << 10);
        let account = &mut world.accounts[0];
        world.budget.charge(account, PeerIndex(0), 0);
        world.refill(0);
        let share = Window {
            envelopes: (16 << 10) / 128,
            bytes: (64 << 20) / 128,
        };
        assert_eq!(world.accounts[0].granted, share);
        assert_eq!(world.budget.refill_below(), share.half());
        world.audit();
    }

    #[test]
    fn the_window_of_the_gone_goes_back_to_the_budget() {
        let mut world = World::new(2, 64 << 20, 1 << 16);
        let before = world.budget.left();
        world.accounts[0].starved = true;
        world.budget.starving.push(PeerIndex(0));
        world.budget.close(&mut world.accounts, PeerIndex(0));
        let mut after = before;
        after.add(Window::INITIAL);
        assert_eq!(world.budget.left(), after);
        assert!(!world.accounts[0].starved && world.budget.starving().is_empty());
        // Twice is once.
        world.budget.close(&mut world.accounts, PeerIndex(0));
        assert_eq!(world.budget.left(), after);
        // One that was gone when it came into contact takes nothing out of the budget.
        let mut late = Account::NEW;
        world.budget.open(&mut late, false);
        assert_eq!(
            (world.budget.left(), late.granted),
            (after, Window::INITIAL)
        );
    }

    proptest! {
        /// No honest sender is ever overdrawn, and to the last envelope and byte nothing is lost.
        #[test]
        fn nothing_is_lost(
            senders in 1_usize..6,
            bytes in 1_usize..1 << 18,
            envelopes in 1_usize..400,
            steps in prop::collection::vec((0_u32..6, 0_u8..8, 0_usize..20_000), 1..400),
        ) {
            let mut world = World::new(senders, bytes, envelopes);
            let mut gone = vec![false; senders];
            for (sender, step, length) in steps {
                let sender = sender % senders as u32;
                match step {
                    0..=4 if !gone[sender as usize] => drop(world.send(sender, length, step < 3)),
                    5 if length < 200 => {
                        world.budget.close(&mut world.accounts, PeerIndex(sender));
                        gone[sender as usize] = true;
                    }
                    _ => world.receive_kept(),
                }
                world.audit();
            }
            // What senders believe and what they were granted is the same.
            for (account, credit) in world.accounts.iter().zip(&world.credit) {
                prop_assert_eq!(account.granted, *credit);
            }
            while !world.kept.is_empty() {
                world.receive_kept();
            }
            world.audit();
        }
    }
}
