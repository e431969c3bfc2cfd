use zerocopy::IntoBytes;

use super::*;

fn secret() -> JobSecret {
    JobSecret::from_bytes([7; JobSecret::LEN])
}

/// Ranks of the job.
const RANKS: u32 = 4;

/// The inbox of rank 0, which rank 1 has greeted, under session 5.
fn greeted() -> (Inbox, EndpointId) {
    let mut inbox = Inbox::new(Rank::new(0), RANKS, secret());
    let hello = Control::hello(Rank::new(1), 5, Rank::new(0), (&secret(), b""));
    inbox.take_control(hello.as_bytes());
    let from = inbox.find(Rank::new(1)).unwrap();
    assert!(matches!(
        inbox.next_early(),
        Some(Early::Event(PeerEvent::Up { .. }))
    ));
    (inbox, from)
}

/// What no correct peer sends is told, whatever rank it names.
#[test]
fn what_is_not_understood_is_told() {
    let (mut inbox, _) = greeted();
    let mut hear = |say: &dyn Fn(&mut Inbox)| {
        say(&mut inbox);
        let told = inbox.next_early();
        assert!(matches!(
            told,
            Some(Early::Event(PeerEvent::Protocol(None, _)))
        ));
    };
    let (own, last) = (Rank::new(0), Rank::new(Rank::MAX));
    let hello = Control::hello(last, 5, own, (&secret(), b""));
    let mut leaving = Control::new(ControlKind::Leaving, last, 5, own);
    for rank in [2, Rank::MAX, u32::MAX] {
        leaving.rank = rank.into();
        hear(&|inbox| inbox.take_control(leaving.as_bytes()));
        let mut hello = hello;
        hello.rank = rank.max(RANKS).into();
        hear(&|inbox| inbox.take_control(hello.as_bytes()));
    }
    for session in [0, 4, u32::MAX] {
        let prefix = Prefix {
            session: session.into(),
            header: [0.into(); 2],
        };
        hear(&|inbox| inbox.take_data(prefix.as_bytes(), b""));
    }
    // The number of rank 1, and one that rank 2 may have.
    for session in [5, 6] {
        let hello = Control::hello(Rank::new(3), session, own, (&secret(), b""));
        hear(&|inbox| inbox.take_control(hello.as_bytes()));
    }
    let hello = Control::hello(Rank::new(2), 6, own, (&secret(), b""));
    for len in 0..size_of::<Control>() {
        hear(&|inbox| inbox.take_control(&hello.as_bytes()[..len]));
    }
    for len in 0..size_of::<Prefix>() {
        hear(&|inbox| inbox.take_data(&[0; 24][..len], b""));
    }
    hear(&|inbox| inbox.take_control(&[0xff; 64]));
}

/// A hello that was overheard is refused when it comes again, and disturbs nobody; so is one that greets another rank.
#[test]
fn what_was_overheard_disturbs_nobody() {
    let (mut inbox, from) = greeted();
    let own = Rank::new(0);
    let overheard = Control::hello(Rank::new(1), 5, own, (&secret(), b""));
    let to_another = Control::hello(Rank::new(2), 6, Rank::new(3), (&secret(), b""));
    let mut changed = to_another;
    changed.to = own.as_u32().into();
    for hello in [overheard, to_another, changed] {
        inbox.take_control(hello.as_bytes());
        let told = inbox.next_early();
        assert!(matches!(
            told,
            Some(Early::Event(PeerEvent::Protocol(None, _)))
        ));
    }
    assert!(!inbox.all_inbound()[from.index()].closed);
    assert!(inbox.find(Rank::new(2)).is_none(), "nobody has come");
}

fn say(inbox: &mut Inbox, kind: ControlKind, b: u64) {
    let mut control = Control::new(kind, Rank::new(1), 5, Rank::new(0));
    control.b = b.into();
    inbox.take_control(control.as_bytes());
}

/// A write of 3 bytes.
fn write(session: u32) -> Write {
    Write {
        session: session.into(),
        access: Access {
            registration: 0.into(),
            generation: 0.into(),
            offset: 0.into(),
            length: 3.into(),
            tag: 9.into(),
        },
    }
}

#[test]
fn writes_are_taken_of_acquaintances_alone() {
    let (mut inbox, from) = greeted();
    let good = write(5);
    let (sender, access) = inbox.take_write(good.as_bytes(), 3).unwrap();
    assert_eq!((sender, access.tag.get()), (from, 9));
    assert!(inbox.next_early().is_none());
    let mut refuse = |header: &[u8], len| {
        assert!(inbox.take_write(header, len).is_none());
        let told = inbox.next_early();
        assert!(matches!(
            told,
            Some(Early::Event(PeerEvent::Protocol(None, _)))
        ));
    };
    for len in 0..size_of::<Write>() {
        refuse(&good.as_bytes()[..len], 3);
    }
    refuse(&[good.as_bytes(), &[0]].concat(), 3);
    refuse(good.as_bytes(), 2);
    refuse(good.as_bytes(), usize::MAX);
    refuse(write(6).as_bytes(), 3);
    say(&mut inbox, ControlKind::Leaving, 0);
    inbox.next_early();
    assert!(inbox.take_write(good.as_bytes(), 3).is_none());
    assert!(inbox.next_early().is_none());
}

#[test]
fn a_goodbye_waits_for_writes_that_are_to_land() {
    let (mut inbox, from) = greeted();
    let landing = Landing {
        from,
        access: write(5).access,
        message: NonNull::dangling(),
    };
    assert!(inbox.begin_landing(landing));
    assert!(inbox.begin_landing(landing));
    say(&mut inbox, ControlKind::Leaving, 0);
    assert!(!inbox.end_landing(from, Some(1)));
    assert!(inbox.parted.is_empty());
    assert!(inbox.end_landing(from, Some(2)));
    assert_eq!(inbox.parted, [from]);
    let early = std::mem::take(&mut inbox.early);
    assert!(matches!(
        Vec::from(early)[..],
        [
            Early::Notice(1),
            Early::Notice(2),
            Early::Event(PeerEvent::Left(_))
        ]
    ));
}

/// As many as a correct peer may have under way; what one has too many does not concern others.
#[test]
fn writes_that_are_to_land_are_bounded() {
    let (mut inbox, from) = greeted();
    let hello = Control::hello(Rank::new(2), 6, Rank::new(0), (&secret(), b""));
    inbox.take_control(hello.as_bytes());
    let other = inbox.find(Rank::new(2)).unwrap();
    let of = |from| Landing {
        from,
        access: write(5).access,
        message: NonNull::dangling(),
    };
    let accepted = (0..10_000).take_while(|_| inbox.begin_landing(of(from)));
    assert_eq!(accepted.count(), MOST_LANDINGS);
    assert_eq!(inbox.landings.len(), MOST_LANDINGS);
    assert!(inbox.begin_landing(of(other)));
    inbox.end_landing(from, Some(1));
    assert!(inbox.begin_landing(of(from)), "one has landed");
    assert!(!inbox.begin_landing(of(from)));
}

#[test]
fn flushes_are_answered_once_so_many_writes_are_dealt_with() {
    let (mut inbox, from) = greeted();
    assert!(!inbox.end_write(from, None));
    say(&mut inbox, ControlKind::Flush, 3);
    assert!(!inbox.end_write(from, None));
    assert!(inbox.unanswered.is_empty());
    assert!(inbox.end_write(from, Some(1)));
    assert_eq!(inbox.unanswered, [(from, 3)]);
    say(&mut inbox, ControlKind::Flush, 2);
    assert_eq!(inbox.unanswered, [(from, 3), (from, 3)]);
    assert!(!inbox.end_write(from, None));
}

/// Short ones have their bytes with them, as many as they say; others have none.
#[test]
fn puts_come_with_all_of_their_bytes_or_none() {
    let (mut inbox, from) = greeted();
    let put = |inbox: &mut Inbox, payload: &[u8]| {
        let control = Control::new(ControlKind::Put, Rank::new(1), 5, Rank::new(0));
        inbox.take_control(&[control.as_bytes(), payload].concat());
    };
    let access = write(5).access;
    put(&mut inbox, access.as_bytes());
    assert_eq!((inbox.accesses.len(), inbox.puts.len()), (1, 0));
    put(&mut inbox, &[access.as_bytes(), b"abc"].concat());
    assert_eq!((inbox.accesses.len(), inbox.puts.len()), (1, 1));
    let (sender, named, bytes) = &inbox.puts[0];
    assert_eq!(
        (*sender, named.tag.get(), &bytes[..]),
        (from, 9, &b"abc"[..])
    );
    assert!(inbox.next_early().is_none());
    for wrong in [&b"ab"[..], b"abcd", &[0; 9000]] {
        put(&mut inbox, &[access.as_bytes(), wrong].concat());
        let told = inbox.next_early();
        assert!(matches!(
            told,
            Some(Early::Event(PeerEvent::Protocol(None, _)))
        ));
    }
    put(&mut inbox, &access.as_bytes()[1..]);
    assert!(inbox.next_early().is_some());
    assert_eq!((inbox.accesses.len(), inbox.puts.len()), (1, 1));
}
