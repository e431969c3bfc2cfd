//! Makes a program that fails shorter and plainer, as long as it fails.

use tagwire_base::{ContextId, Rank, Tag};
use tagwire_matching::{Capacity, Envelope, Pattern};

use crate::gate::Trouble;
use crate::program::{Operation, Program};

/// Returns the shortest program that was found to fail: no operation can be left out, and none made plainer.
///
/// Runs of operations are left out first, long ones before short ones (delta debugging: Zeller and Hildebrandt, IEEE TSE 28,
/// 2002), then numbers become smaller and wildcards exact.
pub(crate) fn shrink(program: Program, fails: &dyn Fn(&Program) -> Option<Trouble>) -> Program {
    let mut best = program;
    cut(&mut best, fails);
    loop {
        let (length, before) = (best.operations.len(), best.clone());
        leave_out(&mut best, fails);
        leave_out_pairs(&mut best, fails);
        make_plain(&mut best, fails);
        if best.operations.len() == length && best == before {
            return best;
        }
    }
}

/// Takes what fails in place of the best; whether it did.
fn take(
    best: &mut Program,
    candidate: Program,
    fails: &dyn Fn(&Program) -> Option<Trouble>,
) -> bool {
    let Some(trouble) = fails(&candidate) else {
        return false;
    };
    *best = candidate;
    best.operations.truncate(trouble.operations);
    true
}

/// Cuts off what comes behind the operation that fails.
fn cut(best: &mut Program, fails: &dyn Fn(&Program) -> Option<Trouble>) {
    let same = best.clone();
    take(best, same, fails);
}

fn leave_out(best: &mut Program, fails: &dyn Fn(&Program) -> Option<Trouble>) {
    let mut run = best.operations.len() / 2;
    while run > 0 {
        let mut at = 0;
        while at + run <= best.operations.len() {
            let mut candidate = best.clone();
            candidate.operations.drain(at..at + run);
            if !take(best, candidate, fails) {
                at += run;
            }
        }
        run /= 2;
    }
}

/// Two that are needed only for each other, as a receive and its message are, go together.
fn leave_out_pairs(best: &mut Program, fails: &dyn Fn(&Program) -> Option<Trouble>) {
    let mut first = 0;
    while first < best.operations.len() && best.operations.len() <= FEW {
        let mut second = first + 1;
        while second < best.operations.len() {
            let mut candidate = best.clone();
            candidate.operations.remove(second);
            candidate.operations.remove(first);
            if !take(best, candidate, fails) {
                second += 1;
            }
        }
        first += 1;
    }
}

fn make_plain(best: &mut Program, fails: &dyn Fn(&Program) -> Option<Trouble>) {
    if best.capacity != Capacity::default() {
        let mut candidate = best.clone();
        candidate.capacity = Capacity::default();
        take(best, candidate, fails);
    }
    use_one_context(best, fails);
    let mut place = 0;
    while place < best.operations.len() {
        for plainer in plainer(best.operations[place]) {
            let mut candidate = best.clone();
            candidate.operations[place] = plainer;
            if take(best, candidate, fails) {
                break;
            }
        }
        place += 1;
    }
}

/// Entries that match are of one context, so that it is changed in all operations at once.
fn use_one_context(best: &mut Program, fails: &dyn Fn(&Program) -> Option<Trouble>) {
    let mut candidate = best.clone();
    for operation in &mut candidate.operations {
        match operation {
            Operation::Post(pattern) | Operation::Probe(pattern) | Operation::Claim(pattern) => {
                pattern.context = ContextId::WORLD;
            }
            Operation::Arrive(envelope, _)
            | Operation::ArriveExpected(envelope)
            | Operation::Expects(envelope) => envelope.context = ContextId::WORLD,
            Operation::Promise(context, _) => *context = ContextId::WORLD,
            Operation::Cancel(_) | Operation::Discard(_) => {}
        }
    }
    if candidate != *best {
        take(best, candidate, fails);
    }
}

/// Operations that are like this one and plainer.
fn plainer(operation: Operation) -> Vec<Operation> {
    match operation {
        Operation::Post(pattern) => patterns(pattern, Operation::Post),
        Operation::Probe(pattern) => patterns(pattern, Operation::Probe),
        Operation::Claim(pattern) => patterns(pattern, Operation::Claim),
        Operation::Arrive(envelope, 0) => envelopes(envelope, |it| Operation::Arrive(it, 0)),
        Operation::Arrive(envelope, _) => vec![Operation::Arrive(envelope, 0)],
        Operation::ArriveExpected(envelope) => envelopes(envelope, Operation::ArriveExpected),
        Operation::Expects(envelope) => envelopes(envelope, Operation::Expects),
        Operation::Cancel(which) => (0..which.min(8)).map(Operation::Cancel).collect(),
        Operation::Discard(which) => (0..which.min(8)).map(Operation::Discard).collect(),
        Operation::Promise(..) => Vec::new(),
    }
}

fn patterns(pattern: Pattern, operation: fn(Pattern) -> Operation) -> Vec<Operation> {
    let mut plainer = Vec::new();
    let exact_source = pattern.source.rank();
    let exact_tag = pattern.tag.tag();
    for source in sources(exact_source) {
        plainer.push(Pattern {
            source: source.into(),
            ..pattern
        });
    }
    for tag in tags(exact_tag) {
        plainer.push(Pattern {
            tag: tag.into(),
            ..pattern
        });
    }
    if pattern.context != ContextId::WORLD {
        plainer.push(Pattern {
            context: ContextId::WORLD,
            ..pattern
        });
    }
    plainer.into_iter().map(operation).collect()
}

fn envelopes(envelope: Envelope, operation: fn(Envelope) -> Operation) -> Vec<Operation> {
    let mut plainer = Vec::new();
    for source in sources(Some(envelope.source)) {
        plainer.push(Envelope { source, ..envelope });
    }
    for tag in tags(Some(envelope.tag)) {
        plainer.push(Envelope { tag, ..envelope });
    }
    if envelope.context != ContextId::WORLD {
        plainer.push(Envelope {
            context: ContextId::WORLD,
            ..envelope
        });
    }
    plainer.into_iter().map(operation).collect()
}

/// Ranks that are plainer: lower ones, or a rank in place of any.
fn sources(source: Option<Rank>) -> impl Iterator<Item = Rank> {
    (0..source.map_or(2, |source| source.as_u32().min(2))).map(Rank::new)
}

/// Tags that are plainer: lower ones, a user's in place of an internal one or of any.
fn tags(tag: Option<Tag>) -> impl Iterator<Item = Tag> {
    let value = tag.map_or(-1, Tag::as_i32);
    let lower = if value < 0 { 2 } else { value.min(2) };
    (0..lower).filter_map(Tag::user)
}

/// Pairs of operations are tried in programs of so many.
const FEW: usize = 60;
