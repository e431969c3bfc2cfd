//! What becomes of a claim on a machine.

use serde::Serialize;

/// Whether a claim holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It holds.
    Holds,
    /// It does not.
    Fails,
    /// Intervals over launches overlap, or the sizes that were measured do not tell.
    Undecided,
    /// What it is about was not measured.
    NotTestable,
}

impl Verdict {
    /// All of them, in the order of lists.
    pub const ALL: [Self; 4] = [Self::Holds, Self::Fails, Self::Undecided, Self::NotTestable];

    /// Returns what it says in lists.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Fails => "fails",
            Self::Undecided => "undecided",
            Self::NotTestable => "not testable here",
        }
    }
}

/// A verdict with what it rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Judgement {
    /// On which transports.
    pub on: String,
    /// Whether the claim holds there.
    pub verdict: Verdict,
    /// The figures that it rests on, or why there are none.
    pub evidence: String,
}

impl Judgement {
    pub(crate) fn new(verdict: Verdict, evidence: impl Into<String>) -> Self {
        Self {
            on: String::new(),
            verdict,
            evidence: evidence.into(),
        }
    }

    pub(crate) fn not_testable(why: impl Into<String>) -> Self {
        Self::new(Verdict::NotTestable, why)
    }

    pub(crate) fn on(mut self, on: impl Into<String>) -> Self {
        self.on = on.into();
        self
    }

    /// Returns it of what the machine was fitted to: it tests nothing.
    pub(crate) fn input(mut self) -> Self {
        self.verdict = Verdict::NotTestable;
        self.after("parameters are fitted to it: ")
    }

    /// Returns it of what a model cannot tell, with why.
    pub(crate) fn untold(mut self, why: &str) -> Self {
        self.verdict = Verdict::NotTestable;
        why.clone_into(&mut self.evidence);
        self
    }

    /// Returns the judgement of a claim that figures without any effect meet as well: not testable.
    pub(crate) fn met_by_nothing(mut self, value: f64) -> Self {
        self.verdict = Verdict::NotTestable;
        self.after(&format!("a constant {value} would hold as well: "))
    }

    /// Returns it with something before its evidence.
    pub(crate) fn after(mut self, text: &str) -> Self {
        self.evidence.insert_str(0, text);
        self
    }
}

/// Returns the judgement of what was not measured.
pub(crate) fn nothing() -> Judgement {
    Judgement::not_testable("no size of it was measured")
}
