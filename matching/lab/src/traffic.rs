//! Programs of ranks that pass messages, and the traces that they make under a model of how messages arrive.
//!
//! A trace shows what one engine was given, the order of arrivals with it. What applications are known by, patterns and traces of
//! other tools, has no such order: it is a [`Script`] for each rank, what it posts, sends and waits for. A [`Model`] makes
//! traces of scripts, and its name goes into their headers. How an order that nobody saw was chosen decides much of what is
//! counted then, so that figures are given over several models.

mod machine;
mod model;
mod time;

pub use model::Model;

use tagwire_matching::Pattern;

/// What a rank does, in its order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Script {
    steps: Vec<Step>,
    requests: u32,
    /// The line of a file that steps are made of; 0: none.
    line: u32,
    is_cut: bool,
}

/// A step, with the nanosecond at which a trace of another tool saw it, and its line there.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Step {
    pub(crate) at: Option<u64>,
    pub(crate) line: u32,
    pub(crate) action: Action,
}

/// An operation of a rank; its number, in the order of the rank's operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Request(pub(crate) u32);

/// A message to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outgoing {
    /// The rank that it goes to.
    pub to: u32,
    /// Its tag, the user's or internal.
    pub tag: i32,
    /// Its context.
    pub context: u16,
    /// Its bytes.
    pub bytes: u64,
    /// Whether the send is complete only once a receive has taken the message.
    pub synchronous: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Action {
    Post(Pattern, Request),
    Send(Outgoing, Request),
    /// Until all are complete.
    Wait(Vec<Request>),
    /// Until one is.
    WaitAny(Vec<Request>),
    /// Until a message is here that such a receive would take.
    Probe(Pattern),
    /// A receive of the message that the last probe found, by its source and tag.
    PostProbed(Request),
    /// The receive is taken back, if it has no message.
    Cancel(Request),
    /// Nothing, for so many nanoseconds.
    Compute(u64),
}

impl Script {
    /// Returns a script without steps.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Posts a receive.
    pub fn post(&mut self, pattern: Pattern) -> Request {
        let request = self.request();
        self.push(Action::Post(pattern, request));
        request
    }

    /// Sends a message, and goes on.
    pub fn send(&mut self, message: Outgoing) -> Request {
        let request = self.request();
        self.push(Action::Send(message, request));
        request
    }

    /// Waits until all are complete.
    pub fn wait(&mut self, requests: Vec<Request>) {
        self.push(Action::Wait(requests));
    }

    /// Waits until one is complete.
    pub fn wait_any(&mut self, requests: Vec<Request>) {
        self.push(Action::WaitAny(requests));
    }

    /// Receives a message, and waits for it.
    pub fn receive(&mut self, pattern: Pattern) {
        let request = self.post(pattern);
        self.wait(vec![request]);
    }

    /// Waits for a message that such a receive would take, and receives that.
    pub fn probe_and_receive(&mut self, pattern: Pattern) {
        self.push(Action::Probe(pattern));
        let request = self.request();
        self.push(Action::PostProbed(request));
        self.wait(vec![request]);
    }

    /// Waits for a message that such a receive would take.
    pub fn probe(&mut self, pattern: Pattern) {
        self.push(Action::Probe(pattern));
    }

    /// Takes a receive back, if it has no message.
    pub fn cancel(&mut self, request: Request) {
        self.push(Action::Cancel(request));
    }

    /// Computes for so many nanoseconds.
    pub fn compute(&mut self, nanos: u64) {
        self.push(Action::Compute(nanos));
    }

    /// The last step was seen at this time, in nanoseconds.
    pub fn seen_at(&mut self, at: u64) {
        if let Some(step) = self.steps.last_mut() {
            step.at = Some(at);
        }
    }

    /// The steps that follow are those of this line of a file.
    pub(crate) fn at_line(&mut self, line: usize) {
        self.line = u32::try_from(line).unwrap_or(u32::MAX);
    }

    /// Returns the script with what `add` adds before each of these steps, in their order, as seen at these times.
    pub(crate) fn with_before<T>(
        mut self,
        places: impl IntoIterator<Item = (usize, u64, T)>,
        mut add: impl FnMut(&mut Self, T),
    ) -> Self {
        let mut own = std::mem::take(&mut self.steps).into_iter();
        let mut taken = 0;
        for (place, at, what) in places {
            self.steps.extend(own.by_ref().take(place - taken));
            taken = place;
            let begin = self.steps.len();
            add(&mut self, what);
            self.steps[begin..]
                .iter_mut()
                .for_each(|step| step.at = Some(at));
        }
        self.steps.extend(own);
        self
    }

    /// The file of the script was cut: ranks that wait for what it would have had end there.
    pub(crate) const fn cut(&mut self) {
        self.is_cut = true;
    }

    pub(crate) const fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Returns how many receives the script posts.
    #[must_use]
    pub fn receives(&self) -> usize {
        let is_receive =
            |step: &&Step| matches!(step.action, Action::Post(..) | Action::PostProbed(_));
        self.steps.iter().filter(is_receive).count()
    }

    /// Returns how many messages the script sends.
    #[must_use]
    pub fn sends(&self) -> usize {
        let is_send = |step: &&Step| matches!(step.action, Action::Send(..));
        self.steps.iter().filter(is_send).count()
    }

    pub(crate) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// How many operations there are.
    pub(crate) const fn requests(&self) -> u32 {
        self.requests
    }

    const fn request(&mut self) -> Request {
        self.requests += 1;
        Request(self.requests - 1)
    }

    fn push(&mut self, action: Action) {
        self.steps.push(Step {
            at: None,
            line: self.line,
            action,
        });
    }
}
