use super::*;

const RETRY: Duration = Duration::from_millis(1);
const PATIENCE: Duration = Duration::from_secs(1);

fn at(micros: u64) -> Time {
    Time::default() + Duration::from_micros(micros)
}

/// A sender that has sent so many messages from `first` on, each with the low byte of its number.
fn sender(first: u32, count: u32) -> Sender {
    let mut sender = Sender::new(first, RETRY);
    for number in 0..count {
        let number = first.wrapping_add(number);
        assert_eq!(sender.next(), number);
        sender.keep(vec![number as u8], Kind::Message, Time::default);
    }
    sender
}

/// Sends again what is lost; returns the numbers.
fn resend(sender: &mut Sender, now: Time) -> Vec<u32> {
    let mut numbers = Vec::new();
    while let Some((number, kind, bytes)) = sender.first_lost() {
        assert_eq!((kind, bytes), (Kind::Message, &[number as u8][..]));
        numbers.push(number);
        sender.resent(number, now);
    }
    numbers
}

fn acknowledge(sender: &mut Sender, consumed: u32, now: Time) -> Option<bool> {
    sender.acknowledge((consumed, false), &mut Vec::new(), 0, || now)
}

/// Which of the messages behind `consumed` have come.
fn seen(consumed: u32, numbers: &[u32]) -> Seen {
    let mut seen = Seen::default();
    for number in numbers {
        let bit = number.wrapping_sub(consumed) - 1;
        seen[bit as usize / 64] |= 1 << (bit % 64);
    }
    seen
}

#[test]
fn what_three_later_ones_have_overtaken_is_lost() {
    // Numbers wrap on the way.
    let first = u32::MAX - 3;
    let number = |offset: u32| first.wrapping_add(offset);
    let mut sender = sender(first, 10);
    sender.heed_seen(first, &seen(first, &[number(1), number(2)]), false, at(1));
    assert_eq!(resend(&mut sender, at(1)), [0; 0], "two may just be early");
    let later = [number(2), number(5), number(6), number(7)];
    sender.heed_seen(first, &seen(first, &later), false, at(2));
    let lost = [number(0), number(3), number(4)];
    assert_eq!(resend(&mut sender, at(2)), lost);
    sender.heed_seen(first, &seen(first, &later), false, at(3));
    assert_eq!(resend(&mut sender, at(3)), [0; 0], "sent again just now");
    sender.heed_seen(first, &seen(first, &later), false, at(5000));
    assert_eq!(resend(&mut sender, at(5000)), lost, "lost again");
    acknowledge(&mut sender, number(10), at(5001)).unwrap();
    assert!(sender.is_empty() && sender.first_lost().is_none());
}

#[test]
fn what_is_overdue_is_lost_at_once() {
    let mut sender = sender(0, 4);
    sender.heed_seen(0, &seen(0, &[2]), true, at(1));
    let lost = resend(&mut sender, at(1));
    assert_eq!(lost, [0, 1], "and 3 may be on its way");
}

#[test]
fn a_timer_sends_the_ends_again_and_backs_off() {
    let mut sender = sender(0, 4);
    assert_eq!(sender.tick(at(10), PATIENCE), Tick::Quiet, "arms the timer");
    assert_eq!(sender.tick(at(1009), PATIENCE), Tick::Quiet);
    assert_eq!(sender.tick(at(1010), PATIENCE), Tick::Resend);
    assert_eq!(resend(&mut sender, at(1010)), [0, 3]);
    assert_eq!(sender.deadline(), Some(at(3010)), "twice as long");
    acknowledge(&mut sender, 1, at(2000)).unwrap();
    assert_eq!(sender.tick(at(2000), PATIENCE), Tick::Quiet);
    assert_eq!(sender.deadline(), Some(at(3000)), "once as long");
    acknowledge(&mut sender, 4, at(2001)).unwrap();
    assert_eq!(sender.tick(at(2002), PATIENCE), Tick::Quiet);
    assert_eq!(sender.deadline(), None);
}

#[test]
fn silence_for_longer_than_patience_is_a_failure() {
    let mut sender = sender(0, 2);
    let (mut now, mut resends) = (at(0), 0);
    loop {
        match sender.tick(now, PATIENCE) {
            Tick::Quiet => {}
            Tick::Resend => resends += 1,
            Tick::Failed => break,
        }
        resend(&mut sender, now);
        now = now + Duration::from_micros(500);
        assert!(now < at(3_000_000), "it waits for ever");
    }
    assert!(now.since(at(0)) >= PATIENCE && resends >= TRIES);
}

#[test]
fn who_was_away_hears_first() {
    let mut sender = sender(0, 2);
    sender.tick(at(0), PATIENCE);
    // Ten seconds without a call.
    assert_eq!(sender.tick(at(10_000_000), PATIENCE), Tick::Quiet);
    assert_eq!(sender.tick(at(10_001_000), PATIENCE), Tick::Resend);
    let mut later = 10_001_000;
    for _ in 1..TRIES {
        later += 200_000;
        assert_eq!(sender.tick(at(later), PATIENCE), Tick::Resend);
    }
}

/// A rank that looks once a day has listened for a time-out each time. Its peer is given up in the end all the same.
#[test]
fn time_in_which_this_rank_is_away_is_not_held_against_its_peer() {
    const MINUTE: Duration = Duration::from_secs(60);
    const DAY: u64 = 86_400_000_000;
    let mut sender = sender(0, 2);
    let mut days = 0;
    while sender.tick(at(days * DAY), MINUTE) != Tick::Failed {
        resend(&mut sender, at(days * DAY));
        days += 1;
        assert!(days < 1000, "it waits for ever");
    }
    assert!(days >= 300, "after {days} looks, of 200 ms at the most");
}

#[test]
fn round_trips_are_measured_of_messages_that_were_sent_once() {
    let mut sender = sender(0, 2);
    acknowledge(&mut sender, 2, at(70)).unwrap();
    assert_eq!(sender.trip.mean(), Some(Duration::from_micros(70)));
    let mut sender = self::sender(MEASURED, 1);
    sender.tick(at(0), PATIENCE);
    sender.tick(at(1000), PATIENCE);
    assert_eq!(resend(&mut sender, at(1000)), [MEASURED]);
    acknowledge(&mut sender, MEASURED + 1, at(1010)).unwrap();
    assert_eq!(sender.trip.mean(), None, "Karn's algorithm");
}

/// One message at a time, whose acknowledgement takes longer than the least time-out.
#[test]
fn a_time_out_that_is_too_short_is_so_twice() {
    const TRIP: u64 = 5000;
    let mut sender = sender(1, 0);
    let (mut now, mut resent) = (0, Vec::new());
    for number in 1..40 {
        let sent = now;
        sender.keep(vec![number as u8], Kind::Message, || at(sent));
        while now < sent + TRIP {
            if sender.tick(at(now), PATIENCE) == Tick::Resend {
                resent.extend(resend(&mut sender, at(now)));
            }
            now += 100;
        }
        acknowledge(&mut sender, number + 1, at(now)).unwrap();
        if number <= 2 {
            // The replies to those that were sent again.
            sender.came_again(at(now + 1000));
            sender.came_again(at(now + 3000));
        }
    }
    assert_eq!(resent, [1, 1, 2, 2], "then it is long enough");
    assert_eq!(sender.trip.mean(), Some(Duration::from_micros(TRIP)));
}

#[test]
fn a_reply_that_comes_again_long_after_says_nothing() {
    let mut sender = sender(1, 1);
    sender.tick(at(0), PATIENCE);
    sender.tick(at(1000), PATIENCE);
    assert_eq!(resend(&mut sender, at(1000)), [1]);
    acknowledge(&mut sender, 2, at(1200)).unwrap();
    sender.came_again(at(4000));
    assert_eq!((sender.trip.mean(), sender.slow), (None, None));
}

#[test]
fn round_trips_are_measured_behind_a_gap() {
    let mut sender = sender(1, MEASURED + 4);
    // The oldest is lost twice: what is acknowledged in the end says nothing of the network.
    let seen_of = |last| seen(1, &(2..=last).collect::<Vec<_>>());
    sender.heed_seen(1, &seen_of(MEASURED - 1), false, at(30));
    assert_eq!(resend(&mut sender, at(30)), [1]);
    assert_eq!(sender.trip.mean(), None);
    let mut sender = self::sender(1, MEASURED + 4);
    sender.heed_seen(1, &seen_of(MEASURED), false, at(40));
    assert_eq!(sender.trip.mean(), Some(Duration::from_micros(40)));
    assert_eq!(resend(&mut sender, at(40)), [1]);
    sender.heed_seen(1, &seen_of(MEASURED + 2), false, at(900));
    acknowledge(&mut sender, MEASURED + 5, at(9000)).unwrap();
    assert_eq!(sender.trip.mean(), Some(Duration::from_micros(40)));
}

/// Acknowledgements are lost over and over: what is sent again is answered, and the time until then is not the network's.
#[test]
fn a_reply_to_the_second_is_no_round_trip_of_the_first() {
    let mut sender = sender(1, 0);
    for number in 1..20_u32 {
        let now = u64::from(number) * 500_000;
        for _ in 0..2 {
            let byte = sender.next() as u8;
            sender.keep(vec![byte], Kind::Message, || at(now));
        }
        sender.tick(at(now), PATIENCE);
        assert_eq!(sender.tick(at(now + 1000), PATIENCE), Tick::Resend);
        assert_eq!(resend(&mut sender, at(now + 1000)).len(), 2);
        let next = sender.next();
        let known = sender.acknowledge((next, true), &mut Vec::new(), 0, || at(now + 1020));
        assert_eq!(known, Some(true));
        sender.came_again(at(now + 1030));
        assert_eq!(sender.trip.mean(), None, "message {number}");
    }
}

#[test]
fn a_peer_that_was_away_once_makes_no_round_trip_longer() {
    let mut sender = sender(1, 0);
    let mut now = 0;
    for number in 1..10 {
        sender.keep(vec![number as u8], Kind::Message, || at(now));
        let away = if number % 3 == 0 { 90_000 } else { 50 };
        for late in (0..away).step_by(100) {
            if sender.tick(at(now + late), PATIENCE) == Tick::Resend {
                resend(&mut sender, at(now + late));
            }
        }
        now += away;
        acknowledge(&mut sender, number + 1, at(now)).unwrap();
        if away > 1000 {
            sender.came_again(at(now + 10));
        }
        assert_eq!(sender.trip.timeout(), RETRY, "message {number}");
    }
}

#[test]
fn impossible_acknowledgements_are_told() {
    let mut sender = sender(5, 3);
    assert_eq!(acknowledge(&mut sender, 9, at(0)), None);
    assert_eq!(
        acknowledge(&mut sender, 4, at(0)),
        Some(false),
        "an old one"
    );
    assert_eq!(acknowledge(&mut sender, 8, at(0)), Some(true));
}
