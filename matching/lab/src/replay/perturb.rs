//! Another legal order of the arrivals of a trace.

use std::collections::BTreeMap;

use crate::random::Random;
use crate::trace::Call;

/// Shuffles the messages of each run of arrivals without another call between them; those of a source keep their order (MPI-5.0,
/// section 3.5). Returns how many came to another place. Times stay with their places.
pub(super) fn perturb(calls: &mut [Call], seed: u64) -> usize {
    let mut random = Random::new(seed);
    let mut moved = 0;
    let mut begin = 0;
    while begin < calls.len() {
        let run = calls[begin..].iter();
        let length = run
            .take_while(|call| call.event.message().is_some())
            .count();
        moved += shuffle(&mut calls[begin..begin + length], &mut random);
        begin += length + 1;
    }
    moved
}

fn shuffle(run: &mut [Call], random: &mut Random) -> usize {
    // The places are dealt to sources at random; each fills its places with its messages in their order.
    let source = |call: &Call| call.event.message().map(|message| message.source.as_u32());
    let mut queues: BTreeMap<Option<u32>, Vec<Call>> = BTreeMap::new();
    for call in run.iter().rev() {
        queues.entry(source(call)).or_default().push(*call);
    }
    let mut places: Vec<Option<u32>> = run.iter().map(source).collect();
    random.shuffle(&mut places);
    let mut moved = 0;
    for (call, source) in run.iter_mut().zip(places) {
        let next = queues.get_mut(&source).and_then(Vec::pop);
        let next = next.expect("a source has as many places as messages");
        moved += usize::from(next.event != call.event);
        call.event = next.event;
        call.matched = next.matched;
    }
    moved
}

#[cfg(test)]
mod tests {
    use tagwire_matching::Pattern;
    use tagwire_matching::trace::{Event, Size};

    use super::*;
    use crate::trace::tests::{message, trace};

    #[test]
    fn sources_keep_their_order_and_calls_of_the_program_their_place() {
        let post = (Event::Post(Pattern::exact(message(9, 9))), false);
        let mut events = Vec::new();
        for half in 0..2 {
            for tag in 0..20 {
                let message = message(tag as u32 % 3, half * 20 + tag);
                events.push((Event::Arrive(message, Size::of(1)), false));
            }
            events.push(post);
        }
        let before = trace(&events).calls;
        let mut seen = Vec::new();
        for seed in 0..4 {
            let mut calls = before.clone();
            assert!(perturb(&mut calls, seed) > 10);
            let mut again = before.clone();
            perturb(&mut again, seed);
            assert_eq!(calls, again, "a seed names one order");
            for place in [20, 41] {
                assert_eq!(calls[place].event, post.0);
            }
            let tags = |source: u32, calls: &[Call]| -> Vec<i32> {
                let messages = calls.iter().filter_map(|call| call.event.message());
                let own = messages.filter(|message| message.source.as_u32() == source);
                own.map(|message| message.tag.as_i32()).collect()
            };
            for source in 0..3 {
                assert_eq!(tags(source, &calls), tags(source, &before));
            }
            assert!(
                calls
                    .iter()
                    .zip(&before)
                    .all(|(one, other)| one.at == other.at)
            );
            seen.push(calls);
        }
        assert_ne!(seen[0], seen[1]);
    }
}
