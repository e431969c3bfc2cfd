//! The frame of every kit: checks with names, in tiers, and how they end.

use std::fmt;

use tagwire_transport::Capabilities;

/// How a check went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The subject does it.
    Passed,
    /// It does not, and this is what was seen.
    Failed(String),
    /// It does not claim to, for this reason.
    NotApplicable(String),
}

/// What a kit checks: a factory that opens the jobs on which checks run, and knows what they claim.
pub trait Subject: Sized + 'static {
    /// Groups of checks, named by what a subject claims.
    type Tier: fmt::Debug + Copy + Eq + 'static;

    /// Every tier of the kit, in the order of reports.
    const TIERS: &'static [Self::Tier];

    /// Every check of the kit, by tier.
    const CHECKS: &'static [Check<Self>];

    /// Returns why `check` does not apply, if it does not.
    ///
    /// # Errors
    /// When no job can be opened to find out.
    fn refuses(&self, check: &Check<Self>) -> Result<Option<String>, String>;

    /// Returns how often a check is run before its failure counts.
    fn tries(&self) -> u32 {
        1
    }
}

/// One thing that every subject of a kit has to do.
pub struct Check<S: Subject> {
    name: &'static str,
    tier: S::Tier,
    ranks: u32,
    also: Capabilities,
    run: fn(&S) -> Result<(), String>,
}

impl<S: Subject> Check<S> {
    /// Makes a check of `tier` on jobs of `ranks`.
    pub(crate) const fn new(
        name: &'static str,
        tier: S::Tier,
        ranks: u32,
        run: fn(&S) -> Result<(), String>,
    ) -> Self {
        Self {
            name,
            tier,
            ranks,
            also: Capabilities::empty(),
            run,
        }
    }

    /// Names what a subject claims beside the tier.
    pub(crate) const fn also(mut self, capabilities: Capabilities) -> Self {
        self.also = capabilities;
        self
    }

    /// Returns its name: what the subject does.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the tier that it belongs to.
    #[must_use]
    pub const fn tier(&self) -> S::Tier {
        self.tier
    }

    /// Returns how many ranks it takes.
    pub(crate) const fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Returns what a subject claims beside the tier.
    pub(crate) const fn claims(&self) -> Capabilities {
        self.also
    }

    /// Runs it on jobs of `subject`.
    #[must_use]
    pub fn run(&self, subject: &S) -> Verdict {
        match subject.refuses(self) {
            Ok(None) => {}
            Ok(Some(reason)) => return Verdict::NotApplicable(reason),
            Err(reason) => return Verdict::Failed(reason),
        }
        for _ in 1..subject.tries() {
            match (self.run)(subject) {
                Ok(()) => return Verdict::Passed,
                Err(reason) => println!("{}: tried again after: {reason}", self.name),
            }
        }
        match (self.run)(subject) {
            Ok(()) => Verdict::Passed,
            Err(reason) => Verdict::Failed(reason),
        }
    }
}

impl<S: Subject> fmt::Debug for Check<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Check({} of {:?})", self.name, self.tier)
    }
}

/// A check, and how it went.
type Outcome<S> = (&'static Check<S>, Verdict);

/// Runs every check on jobs of `subject`.
#[must_use]
pub fn run_all<S: Subject>(subject: &S) -> Vec<Outcome<S>> {
    S::CHECKS
        .iter()
        .map(|check| (check, check.run(subject)))
        .collect()
}

/// Returns the tiers of which every check that applies passes, and at least one does.
#[must_use]
pub fn passed_tiers<S: Subject>(results: &[Outcome<S>]) -> Vec<S::Tier> {
    let of = |tier| results.iter().filter(move |(check, _)| check.tier == tier);
    let passes = |tier: &S::Tier| {
        of(*tier).any(|(_, verdict)| *verdict == Verdict::Passed)
            && !of(*tier).any(|(_, verdict)| matches!(verdict, Verdict::Failed(_)))
    };
    S::TIERS.iter().copied().filter(passes).collect()
}

/// Returns the tiers of which at least one check applies to `subject`.
///
/// # Errors
/// When the subject opens no job.
pub fn tiers<S: Subject>(subject: &S) -> Result<Vec<S::Tier>, String> {
    let mut offered = Vec::new();
    for check in S::CHECKS {
        if subject.refuses(check)?.is_none() {
            offered.push(check.tier);
        }
    }
    let is_offered = |tier: &S::Tier| offered.contains(tier);
    Ok(S::TIERS.iter().copied().filter(is_offered).collect())
}

/// Runs the check called `name`, as a test.
///
/// # Panics
/// When the check fails, or when there is none of that name.
pub fn assert_check<S: Subject>(name: &str, subject: &S) {
    let check = S::CHECKS.iter().find(|check| check.name == name);
    match check.expect("the macro lists the checks").run(subject) {
        Verdict::Passed => {}
        Verdict::NotApplicable(reason) => println!("{name}: not applicable: {reason}"),
        Verdict::Failed(reason) => panic!("{name}: {reason}"),
    }
}

/// Makes tests, or a list of names, for the macros of all kits.
#[doc(hidden)]
#[macro_export]
macro_rules! each_check {
    (@module $kit:ident, $name:ident, $factory:expr) => {
        mod $name {
            #[allow(unused_imports)]
            use super::*;

            fn check(name: &str) {
                $crate::assert_check(name, &$factory);
            }

            $crate::$kit!(@for_each tests);
        }
    };
    (@tests $($($mark:lifetime)? $check:ident)*) => {
        $(
            #[test]
            fn $check() {
                check(stringify!($check));
            }
        )*
    };
    (@names $($($mark:lifetime)? $check:ident)*) => {
        [$(stringify!($check)),*]
    };
    // Those with a mark alone.
    (@selected $what:ident [$($kept:ident)*] $mark:lifetime $check:ident $($rest:tt)*) => {
        $crate::each_check! { @selected $what [$($kept)* $check] $($rest)* }
    };
    (@selected $what:ident [$($kept:ident)*] $check:ident $($rest:tt)*) => {
        $crate::each_check! { @selected $what [$($kept)*] $($rest)* }
    };
    (@selected $what:ident [$($kept:ident)*]) => {
        $crate::each_check! { @$what $($kept)* }
    };
}

/// Makes the table of a kit's checks, and the macro that makes a test of each. A line is a tier, how many ranks the check takes,
/// and its function, whose name is its own; what a subject claims beside the tier stands behind a plus sign, and `'selected` marks the
/// checks of a selection.
macro_rules! kit {
    (
        $(#[$doc:meta])*
        $kit:ident($d:tt), checks of $factory:ty:
        $($tier:ident $ranks:literal $($mark:lifetime)? $module:ident::$check:ident $(+ $claim:ident)?,)*
    ) => {
        /// Every check, by tier.
        pub const CHECKS: &[$crate::Check<$factory>] = &[$(
            $crate::Check::new(stringify!($check), Tier::$tier, $ranks, $module::$check)
                $(.also(tagwire_transport::Capabilities::$claim))?,
        )*];

        $(#[$doc])*
        #[macro_export]
        macro_rules! $kit {
            ($d name:ident, $d factory:expr) => {
                $d crate::each_check!(@module $kit, $d name, $d factory);
            };
            (@for_each $d what:ident) => {
                $d crate::each_check! { @$d what $($($mark)? $check)* }
            };
            (@selection $d what:ident) => {
                $d crate::each_check! { @selected $d what [] $($($mark)? $check)* }
            };
        }
    };
}
pub(crate) use kit;
