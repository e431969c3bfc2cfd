//! Watches over the answers of a library: one that cannot be ends the program before anybody uses it.
//!
//! The guard keeps what is queued, under the handles that the library gave. It does not know what would have been right, which
//! `tagwire match check` finds out; it knows that what is taken is there, was given with this cookie, and fits.

use std::collections::HashMap;
use std::fmt::Display;

use tagwire_base::ContextId;
use tagwire_matching::{
    ArriveOutcome, CancelOutcome, ContextAssertions, Cookie, Engine, Envelope, Handle, Pattern,
    PostOutcome, Stats,
};

use crate::library::{EXPECTED_ONLY, LOOK, QUEUE};
use crate::plain::{Plain, Said, envelope};
use tagwire_matching::judged::refuse;

/// An engine of a library whose answers are those of an engine.
///
/// # Panics
/// Its calls do where the library gives an answer that cannot be, with the engine's name and the answer.
pub(crate) struct Guarded {
    engine: Plain,
    name: String,
    posted: Line<Pattern>,
    unexpected: Line<Envelope>,
}

/// What is queued, by the places that our handles name.
struct Line<T> {
    places: Vec<Option<Entry<T>>>,
    free: Vec<u32>,
    /// The places of the library's handles.
    by_handle: HashMap<u64, u32>,
    /// Entries that were ever queued: a trace numbers them so.
    queued: u32,
    what: &'static str,
}

#[derive(Clone, Copy)]
struct Entry<T> {
    of: T,
    cookie: Cookie,
    number: u32,
    handle: u64,
}

impl Guarded {
    pub(crate) fn new(engine: Plain, name: String) -> Self {
        Self {
            engine,
            name,
            posted: Line::new("receive"),
            unexpected: Line::new("message"),
        }
    }

    #[cold]
    fn refuse(&self, answer: &dyn Display) -> ! {
        refuse(&self.name, answer)
    }

    /// The message that was found for a receive, which stays.
    fn found_message(&self, pattern: Pattern, cookie: u32, handle: u64) -> Entry<Envelope> {
        let entry = self.unexpected.entry(cookie, handle);
        let entry = entry.unwrap_or_else(|answer| self.refuse(&answer));
        if !pattern.accepts(&entry.of) {
            let (message, receive) = (entry.of, pattern);
            self.refuse(&format_args!(
                "gave the message ({message}) for the receive ({receive}), which does not accept it"
            ));
        }
        entry
    }

    /// The receive that was found for a message, which stays.
    fn found_receive(&self, message: Envelope, cookie: u32, handle: u64) -> Entry<Pattern> {
        let entry = self.posted.entry(cookie, handle);
        let entry = entry.unwrap_or_else(|answer| self.refuse(&answer));
        if !entry.of.accepts(&message) {
            let receive = entry.of;
            self.refuse(&format_args!(
                "gave the receive ({receive}) for the message ({message}), which it does not accept"
            ));
        }
        entry
    }

    /// What is found of messages, with what the library says that it is.
    fn looked(
        &self,
        pattern: Pattern,
        said: Said,
        found: Option<Envelope>,
    ) -> Option<Entry<Envelope>> {
        let (cookie, handle) = match said {
            Said::Nothing => return None,
            Said::Matched(cookie, handle) => (cookie, handle),
            other => self.refuse(&strange(other, "a probe")),
        };
        let entry = self.found_message(pattern, cookie, handle);
        if found != Some(entry.of) {
            let message = entry.of;
            self.refuse(&format_args!(
                "found the message ({message}) and said that it is another one"
            ));
        }
        Some(entry)
    }

    /// What is found of receives by a message that is not to be queued.
    fn expected(&self, message: Envelope, said: Said, call: &str) -> Option<Entry<Pattern>> {
        match said {
            Said::Nothing => None,
            Said::Matched(cookie, handle) => Some(self.found_receive(message, cookie, handle)),
            other => self.refuse(&strange(other, call)),
        }
    }
}

impl Engine for Guarded {
    fn post(&mut self, pattern: Pattern, cookie: Cookie) -> PostOutcome {
        match self.engine.say_post(pattern, cookie) {
            Said::Matched(cookie, handle) => {
                let entry = self.found_message(pattern, cookie, handle);
                self.unexpected.remove(entry.handle);
                PostOutcome::Matched(entry.cookie)
            }
            Said::Queued(handle) => match self.posted.push(pattern, cookie, handle) {
                Ok(handle) => PostOutcome::Queued(handle),
                Err(answer) => self.refuse(&answer),
            },
            Said::Full => PostOutcome::Full,
            other => self.refuse(&strange(other, "a post")),
        }
    }

    fn arrive(&mut self, envelope: Envelope, cookie: Cookie) -> ArriveOutcome {
        match self.engine.say_arrive(envelope, cookie, QUEUE) {
            Said::Matched(cookie, handle) => {
                let entry = self.found_receive(envelope, cookie, handle);
                self.posted.remove(entry.handle);
                ArriveOutcome::Matched(entry.cookie)
            }
            Said::Queued(handle) => match self.unexpected.push(envelope, cookie, handle) {
                Ok(handle) => ArriveOutcome::Queued(handle),
                Err(answer) => self.refuse(&answer),
            },
            Said::Full => ArriveOutcome::Full,
            other => self.refuse(&strange(other, "a message that is to be queued")),
        }
    }

    fn arrive_expected(&mut self, envelope: Envelope) -> Option<Cookie> {
        let said = self.engine.say_arrive(envelope, Cookie(0), EXPECTED_ONLY);
        let entry = self.expected(envelope, said, "a message that is not to be queued")?;
        self.posted.remove(entry.handle);
        Some(entry.cookie)
    }

    fn expects(&mut self, envelope: Envelope) -> Option<Cookie> {
        let said = self.engine.say_arrive(envelope, Cookie(0), LOOK);
        let entry = self.expected(envelope, said, "a look for a receive")?;
        Some(entry.cookie)
    }

    fn probe(&mut self, pattern: Pattern) -> Option<(Envelope, Cookie)> {
        let (said, found) = self.engine.say_look(pattern, false);
        let entry = self.looked(pattern, said, envelope(found))?;
        Some((entry.of, entry.cookie))
    }

    fn claim(&mut self, pattern: Pattern) -> Option<(Envelope, Cookie)> {
        let (said, found) = self.engine.say_look(pattern, true);
        let entry = self.looked(pattern, said, envelope(found))?;
        self.unexpected.remove(entry.handle);
        Some((entry.of, entry.cookie))
    }

    fn cancel(&mut self, handle: Handle) -> CancelOutcome {
        let Some(entry) = self.posted.named(handle) else {
            return CancelOutcome::AlreadyMatched;
        };
        let said = self.engine.say_withdraw(entry.handle, false);
        if said != Said::Matched(entry.cookie.0, entry.handle) {
            self.refuse(&unwithdrawn("receive", entry.handle, said));
        }
        self.posted.remove(entry.handle);
        CancelOutcome::Cancelled(entry.cookie)
    }

    fn discard(&mut self, handle: Handle) -> CancelOutcome {
        let Some(entry) = self.unexpected.named(handle) else {
            return CancelOutcome::AlreadyMatched;
        };
        let said = self.engine.say_withdraw(entry.handle, true);
        if said != Said::Matched(entry.cookie.0, entry.handle) {
            self.refuse(&unwithdrawn("message", entry.handle, said));
        }
        self.unexpected.remove(entry.handle);
        CancelOutcome::Cancelled(entry.cookie)
    }

    fn posted_len(&self) -> usize {
        self.posted.by_handle.len()
    }

    fn unexpected_len(&self) -> usize {
        self.unexpected.by_handle.len()
    }

    fn stats(&self) -> Stats {
        self.engine.stats()
    }

    fn for_each_posted(&self, visit: &mut dyn FnMut(Pattern, Cookie)) {
        self.posted.visit(visit);
    }

    fn for_each_unexpected(&self, visit: &mut dyn FnMut(Envelope, Cookie)) {
        self.unexpected.visit(visit);
    }

    fn set_assertions(&mut self, context: ContextId, assertions: ContextAssertions) {
        self.engine.set_assertions(context, assertions);
    }
}

impl<T: Copy> Line<T> {
    fn new(what: &'static str) -> Self {
        Self {
            places: Vec::new(),
            free: Vec::new(),
            by_handle: HashMap::new(),
            queued: 0,
            what,
        }
    }

    /// Keeps an entry that the library has queued, and returns our handle.
    fn push(&mut self, of: T, cookie: Cookie, handle: u64) -> Result<Handle, String> {
        if self.by_handle.contains_key(&handle) {
            let what = self.what;
            return Err(format!(
                "gave a {what} the handle {handle}, which another one has"
            ));
        }
        let number = self.queued;
        self.queued = number.wrapping_add(1);
        let entry = Entry {
            of,
            cookie,
            number,
            handle,
        };
        let place = self.free.pop().unwrap_or(self.places.len() as u32);
        match self.places.get_mut(place as usize) {
            Some(empty) => *empty = Some(entry),
            None => self.places.push(Some(entry)),
        }
        self.by_handle.insert(handle, place);
        Ok(Handle::from_parts(place, number))
    }

    /// The entry of a library's handle, which was given with this cookie.
    fn entry(&self, cookie: u32, handle: u64) -> Result<Entry<T>, String> {
        let what = self.what;
        let place = self.by_handle.get(&handle);
        let entry = place.and_then(|place| self.places.get(*place as usize).copied().flatten());
        let Some(entry) = entry else {
            return Err(format!(
                "gave the {what} with the handle {handle} and the cookie {cookie}, which is not queued"
            ));
        };
        if entry.cookie.0 != cookie {
            return Err(format!(
                "gave the cookie {cookie} for the {what} with the handle {handle}, whose cookie is {}",
                entry.cookie.0
            ));
        }
        Ok(entry)
    }

    /// The entry of our handle.
    fn named(&self, handle: Handle) -> Option<Entry<T>> {
        let entry = self.places.get(handle.slot() as usize).copied().flatten();
        entry.filter(|entry| entry.number == handle.generation())
    }

    fn remove(&mut self, handle: u64) {
        if let Some(place) = self.by_handle.remove(&handle) {
            self.places[place as usize] = None;
            self.free.push(place);
        }
    }

    /// Visits the entries in the order in which they were queued.
    fn visit(&self, visit: &mut dyn FnMut(T, Cookie)) {
        let mut entries: Vec<&Entry<T>> = self.places.iter().flatten().collect();
        // Numbers go round at 2^32: the oldest are the furthest behind the next one.
        entries.sort_by_key(|entry| entry.number.wrapping_sub(self.queued));
        for entry in entries {
            visit(entry.of, entry.cookie);
        }
    }
}

pub(crate) fn strange(said: Said, call: &str) -> String {
    match said {
        Said::Status(status) => {
            format!("answered {call} with the status {status}, which there is not")
        }
        Said::Nothing => format!("answered {call} with nothing at all"),
        Said::Queued(handle) => format!("queued {call}, with the handle {handle}"),
        Said::Matched(..) | Said::Full => format!("answered {call} with a full queue"),
    }
}

fn unwithdrawn(what: &str, handle: u64, said: Said) -> String {
    format!("has a {what} with the handle {handle} and did not give it back: {said:?}")
}
