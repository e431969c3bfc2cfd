//! A follower of an engine: it keeps what must be queued, and judges each answer by a grade.
//!
//! It does not predict what the engine will choose. It looks at the choice, reports whether the grade allows it, and goes on
//! with what the engine has done: so engines that MPI allows but that differ from the oracle pass too.

use tagwire_matching::judged::Impossible;
use tagwire_matching::{
    ArriveOutcome, Capacity, Cookie, Engine, Envelope, Grade, Pattern, PostOutcome, Stats,
};

use crate::program::{Operation, Words};
use crate::queued::{Answer, Entry, Line};

/// An engine and what it must hold.
pub(crate) struct Follower<'a> {
    engine: &'a mut dyn Engine,
    grade: Grade,
    receives: Line<Pattern>,
    messages: Line<Envelope>,
    /// How many operations there were: cookies are their numbers, from 1 on.
    steps: u32,
    /// Whether a message may be refused for its bytes.
    is_bounded_by_bytes: bool,
    /// What the engine answered that there is not, beside its answers.
    impossible: Impossible,
}

impl<'a> Follower<'a> {
    pub(crate) fn new(engine: &'a mut dyn Engine, grade: Grade, capacity: Capacity) -> Self {
        Self {
            engine,
            grade,
            receives: Line::new("receive", capacity.posted),
            messages: Line::new("message", capacity.unexpected),
            steps: 0,
            is_bounded_by_bytes: false,
            impossible: Impossible::default(),
        }
    }

    /// The same, of an engine that tells what it answered that there is not.
    pub(crate) fn told_by(self, impossible: Impossible) -> Self {
        Self { impossible, ..self }
    }

    /// The same, of an engine that may also refuse a message for its bytes while others are queued.
    pub(crate) fn bounded_by_bytes(self, is_bounded_by_bytes: bool) -> Self {
        Self {
            is_bounded_by_bytes,
            ..self
        }
    }

    /// Has the engine do one operation; returns what it answered, in words.
    pub(crate) fn apply(&mut self, operation: Operation) -> Result<Answer, String> {
        self.steps += 1;
        let answer = self.answer(operation);
        // What was made of an answer that there is not says less than that answer.
        self.could_be()?;
        let answer = answer?;
        self.compare_lengths()?;
        Ok(answer)
    }

    fn could_be(&self) -> Result<(), String> {
        match self.impossible.told() {
            Some(told) => Err(format!("the engine {told}")),
            None => Ok(()),
        }
    }

    fn answer(&mut self, operation: Operation) -> Result<Answer, String> {
        match operation {
            Operation::Post(pattern) => self.post(pattern),
            Operation::Arrive(envelope, bytes) => self.arrive(envelope, bytes),
            Operation::ArriveExpected(envelope) => {
                let given = self.engine.arrive_expected(envelope);
                self.message_goes_to(envelope, given)?;
                Ok(Answer::taken("receive", given))
            }
            Operation::Expects(envelope) => {
                let given = self.engine.expects(envelope);
                self.judge_receive(envelope, given)?;
                self.receives.stats.probes += u64::from(!self.receives.entries.is_empty());
                Ok(Answer::taken("receive", given))
            }
            Operation::Probe(pattern) => {
                let given = self.engine.probe(pattern);
                self.judge_message(pattern, given)?;
                self.messages.stats.probes += u64::from(!self.messages.entries.is_empty());
                Ok(Answer::taken("message", given.map(|(_, cookie)| cookie)))
            }
            Operation::Claim(pattern) => {
                let given = self.engine.claim(pattern);
                let place = self.judge_message(pattern, given)?;
                self.messages.search(place);
                Ok(Answer::taken("message", given.map(|(_, cookie)| cookie)))
            }
            Operation::Cancel(which) => {
                let Some((handle, cookie)) = self.receives.named(which) else {
                    return Ok(Answer::Nothing);
                };
                let outcome = self.engine.cancel(handle);
                self.receives.withdraw(handle, cookie, outcome)
            }
            Operation::Discard(which) => {
                let Some((handle, cookie)) = self.messages.named(which) else {
                    return Ok(Answer::Nothing);
                };
                let outcome = self.engine.discard(handle);
                self.messages.withdraw(handle, cookie, outcome)
            }
            Operation::Promise(context, promise) => {
                self.engine.set_assertions(context, promise);
                Ok(Answer::Nothing)
            }
        }
    }

    /// Compares all that is queued, and what was counted.
    pub(crate) fn compare_all(&self) -> Result<(), String> {
        let mut receives = Vec::new();
        let mut note = |pattern, cookie| receives.push((pattern, cookie));
        self.engine.for_each_posted(&mut note);
        let mut messages = Vec::new();
        let mut note = |envelope, cookie| messages.push((envelope, cookie));
        self.engine.for_each_unexpected(&mut note);
        self.could_be()?;
        self.receives
            .compare(receives, |_, _| self.grade == Grade::Free)?;
        self.messages.compare(messages, |a, b| match self.grade {
            Grade::Exact => false,
            Grade::Mpi => (a.source, a.context) != (b.source, b.context),
            Grade::Free => true,
        })?;
        self.compare_counters()
    }

    /// Withdraws everything by its handle, also what has left, which leaves the engine empty.
    pub(crate) fn drain(&mut self) -> Result<(), String> {
        for (handle, cookie) in std::mem::take(&mut self.receives.queued) {
            for _ in 0..2 {
                let outcome = self.engine.cancel(handle);
                self.could_be()?;
                self.receives.withdraw(handle, cookie, outcome)?;
            }
        }
        for (handle, cookie) in std::mem::take(&mut self.messages.queued) {
            for _ in 0..2 {
                let outcome = self.engine.discard(handle);
                self.could_be()?;
                self.messages.withdraw(handle, cookie, outcome)?;
            }
        }
        self.compare_lengths()
    }

    fn post(&mut self, pattern: Pattern) -> Result<Answer, String> {
        let cookie = Cookie(self.steps);
        let outcome = self.engine.post(pattern, cookie);
        let taken = match outcome {
            PostOutcome::Matched(cookie) => {
                let envelope = self.messages.envelope_of(cookie);
                Some((
                    envelope.ok_or_else(|| self.messages.no_such(cookie))?,
                    cookie,
                ))
            }
            _ => None,
        };
        let place = self.judge_message(pattern, taken)?;
        self.messages.search(place);
        match outcome {
            PostOutcome::Matched(cookie) => Ok(Answer::Took("message", cookie)),
            PostOutcome::Queued(handle) => self.receives.push(pattern, cookie, handle),
            PostOutcome::Full => self.receives.is_full(),
        }
    }

    fn arrive(&mut self, envelope: Envelope, bytes: usize) -> Result<Answer, String> {
        let cookie = Cookie(self.steps);
        let outcome = self.engine.arrive_sized(envelope, cookie, bytes);
        let taken = match outcome {
            ArriveOutcome::Matched(cookie) => Some(cookie),
            _ => None,
        };
        self.message_goes_to(envelope, taken)?;
        match outcome {
            ArriveOutcome::Matched(cookie) => Ok(Answer::Took("receive", cookie)),
            ArriveOutcome::Queued(handle) => self.messages.push(envelope, cookie, handle),
            // Whoever has no message has room for the bytes of any.
            ArriveOutcome::Full
                if self.is_bounded_by_bytes && !self.messages.entries.is_empty() =>
            {
                Ok(Answer::Full)
            }
            ArriveOutcome::Full => self.messages.is_full(),
        }
    }

    fn message_goes_to(&mut self, envelope: Envelope, given: Option<Cookie>) -> Result<(), String> {
        let place = self.judge_receive(envelope, given)?;
        self.receives.search(place);
        Ok(())
    }

    /// Whether a message may go to a receive, or to none; where the receive stands.
    fn judge_receive(
        &self,
        envelope: Envelope,
        given: Option<Cookie>,
    ) -> Result<Option<usize>, String> {
        let receives = &self.receives;
        let accepts = |entry: &Entry<Pattern>| entry.what.accepts(&envelope);
        let first = receives.entries.iter().find(|entry| accepts(entry));
        let Some(cookie) = given else {
            return match first {
                Some(first) => Err(format!(
                    "the message found no receive, and that of line {} accepts it",
                    first.cookie.0
                )),
                None => Ok(None),
            };
        };
        let place = receives.place_of(cookie)?;
        if !accepts(&receives.entries[place]) {
            return Err(format!(
                "the receive of line {} does not accept the message",
                cookie.0
            ));
        }
        match first.filter(|first| first.cookie != cookie && self.grade != Grade::Free) {
            Some(first) => Err(format!(
                "the message went to the receive of line {}, and that of line {} was posted before and accepts it",
                cookie.0, first.cookie.0
            )),
            None => Ok(Some(place)),
        }
    }

    /// Whether a receive may take a message, or none; where the message stands.
    fn judge_message(
        &self,
        pattern: Pattern,
        given: Option<(Envelope, Cookie)>,
    ) -> Result<Option<usize>, String> {
        let messages = &self.messages;
        let accepted = |entry: &&Entry<Envelope>| pattern.accepts(&entry.what);
        let Some((envelope, cookie)) = given else {
            return match messages.entries.iter().find(accepted) {
                Some(first) => Err(format!(
                    "the receive found no message, and accepts that of line {}",
                    first.cookie.0
                )),
                None => Ok(None),
            };
        };
        let place = messages.place_of(cookie)?;
        let own = messages.entries[place].what;
        if envelope != own {
            return Err(format!(
                "the message of line {} came back as {}",
                cookie.0,
                Words(&envelope)
            ));
        }
        if !pattern.accepts(&own) {
            return Err(format!(
                "the receive does not accept the message of line {}",
                cookie.0
            ));
        }
        let is_ordered = |entry: &&Entry<Envelope>| match self.grade {
            Grade::Exact => true,
            Grade::Mpi => (entry.what.source, entry.what.context) == (own.source, own.context),
            Grade::Free => false,
        };
        let mut before = messages.entries[..place].iter().filter(is_ordered);
        match before.find(accepted) {
            Some(first) => Err(format!(
                "the receive took the message of line {}, and that of line {} came before and is accepted",
                cookie.0, first.cookie.0
            )),
            None => Ok(Some(place)),
        }
    }

    fn compare_lengths(&self) -> Result<(), String> {
        self.receives.compare_length(self.engine.posted_len())?;
        self.messages.compare_length(self.engine.unexpected_len())
    }

    /// The counters of an exact engine are those of the oracle, but for how many entries it looked at, and how many in vain.
    fn compare_counters(&self) -> Result<(), String> {
        if self.grade != Grade::Exact {
            return Ok(());
        }
        let mut told = self.engine.stats();
        for queue in [&mut told.posted, &mut told.unexpected] {
            (queue.attempts, queue.false_hits, queue.deepest) = (0, 0, None);
        }
        let wanted = Stats {
            posted: self.receives.stats,
            unexpected: self.messages.stats,
        };
        match told == wanted {
            true => Ok(()),
            false => Err(format!("it counted {told:?}, and there were {wanted:?}")),
        }
    }
}
