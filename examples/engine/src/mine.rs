//! An engine to begin with: one list for each queue.
//!
//! Its slots and lists are those of the kit. What makes an engine another one is where an entry is put and which entries are
//! looked at: here `take`, `look` and the two calls that append.

use tagwire_base::named::{Parameter, Spec};
use tagwire_matching::kit::{self, Counting, FromParameters, Private, Selector, Storage, View};
use tagwire_matching::storage::{Cells, Local};
use tagwire_matching::{
    ArriveOutcome, CancelOutcome, Capacity, Cookie, Engine, Envelope, Handle, Pattern, PostOutcome,
    Stats,
};

/// The engine; lines of cache are counted over words of another kind.
#[derive(Debug)]
pub struct Mine<C: Cells = Local> {
    storage: Private<1, C>,
}

impl FromParameters for Mine {
    const PARAMETERS: &'static [Parameter] = &[Parameter::number(
        "reserve",
        0,
        0..=1 << 20,
        "receives for which there is room from the start",
    )];
    const ABOUT: &'static str = "a template: one list for each queue, walked from its head";

    fn from_parameters(parameters: &Spec, capacity: Capacity) -> Self {
        Self::new(parameters, capacity)
    }

    fn counting(parameters: &Spec, capacity: Capacity) -> Option<Box<dyn Engine + Send>> {
        Some(Box::new(Mine::<Counting>::new(parameters, capacity)))
    }
}

impl<C: Cells> Mine<C> {
    fn new(parameters: &Spec, capacity: Capacity) -> Self {
        let mut storage = Private::new(capacity);
        let wanted = parameters.number("reserve") as usize;
        while storage.posted().len() < wanted && storage.grow_posted() {}
        Self { storage }
    }

    fn posted(&self) -> View<'_, C, 1> {
        kit::posted(&self.storage)
    }

    fn unexpected(&self) -> View<'_, C, 1> {
        kit::unexpected(&self.storage)
    }
}

impl<C: Cells> Engine for Mine<C> {
    fn post(&mut self, pattern: Pattern, cookie: Cookie) -> PostOutcome {
        let receive = Selector::of_receive(pattern);
        if let Some((_, taken)) = take(self.unexpected(), |message| receive.accepts(message)) {
            return PostOutcome::Matched(taken);
        }
        let Some(handle) = kit::insert_posted(&mut self.storage, receive, cookie) else {
            return PostOutcome::Full;
        };
        let view = self.posted();
        view.append(LIST, view.head(), handle.slot());
        PostOutcome::Queued(handle)
    }

    fn arrive(&mut self, envelope: Envelope, cookie: Cookie) -> ArriveOutcome {
        if let Some(taken) = self.arrive_expected(envelope) {
            return ArriveOutcome::Matched(taken);
        }
        let message = Selector::of_message(envelope);
        let Some(handle) = kit::insert_unexpected(&mut self.storage, message, cookie) else {
            return ArriveOutcome::Full;
        };
        let view = self.unexpected();
        view.append(LIST, view.head(), handle.slot());
        ArriveOutcome::Queued(handle)
    }

    fn arrive_expected(&mut self, envelope: Envelope) -> Option<Cookie> {
        let message = Selector::of_message(envelope);
        let taken = take(self.posted(), |receive| receive.accepts(message));
        taken.map(|(_, cookie)| cookie)
    }

    fn expects(&mut self, envelope: Envelope) -> Option<Cookie> {
        let message = Selector::of_message(envelope);
        let found = look(self.posted(), |receive| receive.accepts(message));
        found.map(|(_, cookie)| cookie)
    }

    fn probe(&mut self, pattern: Pattern) -> Option<(Envelope, Cookie)> {
        let receive = Selector::of_receive(pattern);
        let (message, cookie) = look(self.unexpected(), |message| receive.accepts(message))?;
        Some((message.envelope()?, cookie))
    }

    fn claim(&mut self, pattern: Pattern) -> Option<(Envelope, Cookie)> {
        let receive = Selector::of_receive(pattern);
        let (message, cookie) = take(self.unexpected(), |message| receive.accepts(message))?;
        Some((message.envelope()?, cookie))
    }

    fn cancel(&mut self, handle: Handle) -> CancelOutcome {
        withdraw(self.posted(), handle)
    }

    fn discard(&mut self, handle: Handle) -> CancelOutcome {
        withdraw(self.unexpected(), handle)
    }

    fn posted_len(&self) -> usize {
        self.posted().len() as usize
    }

    fn unexpected_len(&self) -> usize {
        self.unexpected().len() as usize
    }

    fn stats(&self) -> Stats {
        Stats {
            posted: self.posted().stats(),
            unexpected: self.unexpected().stats(),
        }
    }

    fn for_each_posted(&self, visit: &mut dyn FnMut(Pattern, Cookie)) {
        self.posted().visit_sorted(visit);
    }

    fn for_each_unexpected(&self, visit: &mut dyn FnMut(Envelope, Cookie)) {
        let view = self.unexpected();
        view.visit_envelopes(LIST, view.first(), visit);
    }
}

/// Takes the first entry that fits.
fn take<C: Cells>(
    view: View<'_, C, 1>,
    fits: impl Fn(Selector) -> bool,
) -> Option<(Selector, Cookie)> {
    if view.is_empty() {
        return None;
    }
    let (found, looked) = view.find(LIST, view.first(), |entry, _| fits(entry));
    view.count_search(found.is_some(), looked);
    let (slot, node) = found?;
    let entry = node.selector();
    view.unlink(LIST, view.head(), slot, node);
    Some((entry, view.release(slot, node)))
}

/// Finds the first entry that fits; it stays.
fn look<C: Cells>(
    view: View<'_, C, 1>,
    fits: impl Fn(Selector) -> bool,
) -> Option<(Selector, Cookie)> {
    if view.is_empty() {
        return None;
    }
    let (found, looked) = view.find(LIST, view.first(), |entry, _| fits(entry));
    view.count_probe(looked);
    found.map(|(_, node)| (node.selector(), node.cookie()))
}

fn withdraw<C: Cells>(view: View<'_, C, 1>, handle: Handle) -> CancelOutcome {
    let entry = view.named(handle).map(|node| {
        view.unlink(LIST, view.head(), handle.slot(), node);
        view.release(handle.slot(), node)
    });
    view.withdrawn(entry)
}

/// The one list that an entry is on.
const LIST: usize = 0;
