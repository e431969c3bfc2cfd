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
    /// What it is about was not measured.
    NotTestable,
}

impl Verdict {
    /// Returns what it says in lists.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Fails => "fails",
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
    pub(crate) fn new(holds: bool, evidence: String) -> Self {
        let verdict = if holds {
            Verdict::Holds
        } else {
            Verdict::Fails
        };
        Self {
            on: String::new(),
            verdict,
            evidence,
        }
    }

    pub(crate) fn not_testable(why: impl Into<String>) -> Self {
        Self {
            on: String::new(),
            verdict: Verdict::NotTestable,
            evidence: why.into(),
        }
    }

    pub(crate) fn on(mut self, on: impl Into<String>) -> Self {
        self.on = on.into();
        self
    }
}
