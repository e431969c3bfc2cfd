//! Runs cm against its transport: what is pending, and whoever leaves.

use tagwire_base::Rank;
use tagwire_transport::{Capabilities, Directed, MatchTransport, RemoteAccess};

use super::state::{Pending, State};
use crate::contacts;
use crate::peers::LANE;
use crate::slab::Handle;
use crate::types::Failure;

/// How often peers are looked after, about ten times a second, before a goodbye that does not come is
/// taken for granted.
const GOODBYE_LOOKS: u32 = 20;

/// The transport of a rank, what it takes, and who leaves it.
pub(super) struct MatchDriver {
    pub rail: Box<dyn MatchTransport>,
    pub directed: Directed,
    pub max_message: u64,
    pub max_posted: usize,
    /// Longest message whose bytes go with its envelope.
    pub max_short: usize,
    /// Ranks that have left by the bootstrap's word and not yet by the transport's, and how often
    /// that was waited for.
    pub leavers: Vec<(Rank, u32)>,
}

impl MatchDriver {
    pub(super) fn new(rail: Box<dyn MatchTransport>) -> Self {
        let limits = rail.match_limits();
        Self {
            directed: limits.directed,
            max_message: limits.max_message,
            max_posted: limits.max_posted,
            max_short: limits.max_short,
            leavers: Vec::new(),
            rail,
        }
    }

    #[inline]
    pub(super) fn progress_once(&mut self, core: &mut State) -> usize {
        let mut events = self.rail.progress(LANE, core);
        if core.lane.services.is_some() {
            events += self.drive_services(core);
        }
        if core.pending.is_empty() {
            events
        } else {
            events + self.advance_pending(core)
        }
    }

    /// Looks at memory that peers write, has the services that were called do what there is, and sends their packets. Returns how
    /// many things happened.
    #[cold]
    fn drive_services(&mut self, core: &mut State) -> usize {
        let come = core.lane.look_at_memory();
        let remote = self.rail.remote();
        let rail = remote.map(|remote| remote as &mut dyn RemoteAccess);
        let done = core.lane.drive_services(rail);
        come + done + contacts::send_packets(&mut self.contacts(core))
    }

    /// Advances each pending operation once; what finds the transport busy stays for the next time. Returns how
    /// many things happened.
    #[cold]
    pub(super) fn advance_pending(&mut self, core: &mut State) -> usize {
        let mut events = 0;
        for _ in 0..core.pending.len() {
            let Some(operation) = core.pending.pop_front() else {
                break;
            };
            events += match operation {
                Pending::Flush(peer) => self.flush(core, peer),
                Pending::Post => self.post_waiting(core),
                Pending::Lost {
                    peer,
                    rank,
                    failure,
                    died,
                } => {
                    if let Some(peer) = core.lane.peers.get_mut(peer) {
                        for handle in std::mem::take(&mut peer.queue) {
                            core.finish(handle, Some(failure));
                        }
                    }
                    self.end_waiting(core, rank, failure, died)
                }
            };
        }
        events
    }

    /// Whoever left has been heard to the end by the transport, as a rule, which says so itself. Where
    /// that is a network, contact and goodbye may be on the way, or may never come: who left
    /// before it had heard of us said no goodbye.
    #[cold]
    pub(super) fn await_leavers(&mut self, core: &mut State) {
        let is_network = self.rail.capabilities().contains(Capabilities::REMOTE);
        for (rank, looks) in std::mem::take(&mut self.leavers) {
            let (left, contact) = (Failure::PeerLeft(rank), core.lane.peers.find(rank));
            match contact {
                _ if core.lane.losses.of(rank).is_some() => {}
                _ if is_network && looks < GOODBYE_LOOKS => self.leavers.push((rank, looks + 1)),
                Some(index) if is_network => core.lose(index, left),
                _ => core.member_gone(rank, left),
            }
        }
    }

    /// Ends the receives that wait for `rank`, and, when it `died`, those that wait for any.
    fn end_waiting(&mut self, core: &mut State, rank: Rank, failure: Failure, died: bool) -> usize {
        let concerned: Vec<Handle> = core
            .requests
            .iter()
            .filter(|(_, request)| {
                request.is_active()
                    && !request.is_send
                    && request.claim.is_none()
                    && request.from.accepts(rank)
                    && (died || !request.from.is_any())
            })
            .map(|(handle, _)| handle)
            .collect();
        for handle in &concerned {
            self.give_up(core, *handle, failure);
        }
        concerned.len() + 1
    }
}
