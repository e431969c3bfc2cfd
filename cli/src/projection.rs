//! What `tagwire reproduce partitioned/fig13` projects of shares and factors that are given.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use tagwire_papers::{Item, PROJECTED, Rows, projected, share_of_profile, shares};

use crate::failure::Failure;

/// The options of a projection.
#[derive(Debug, Default, Args)]
pub struct ProjectionOptions {
    /// Project the gain of a program that sends and receives for so many percent of its time
    /// (partitioned/fig13) [default: the published shares of SNAP]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    share: Option<f64>,

    /// Take that share from a file of 'tagwire bench --profile --format json' (partitioned/fig13)
    #[arg(long, value_name = "FILE", conflicts_with = "share")]
    profile: Option<PathBuf>,

    /// By how much sends and receives get faster; then nothing is measured (partitioned/fig13)
    /// [default: as measured]
    #[arg(long, value_name = "RATIO", value_parser = factor)]
    factor: Option<f64>,
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text);
    match number.parse() {
        Ok(share) if (0.0..=100.0).contains(&share) => Ok(share),
        _ => Err("expected a share from 0 to 100 percent, such as 20.4".to_owned()),
    }
}

fn factor(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(factor) if factor > 0.0 && f64::is_finite(factor) => Ok(factor),
        _ => Err("expected a ratio greater than 0, such as 15.1".to_owned()),
    }
}

impl ProjectionOptions {
    const fn is_given(&self) -> bool {
        self.share.is_some() || self.profile.is_some() || self.factor.is_some()
    }

    /// Refuses other items than the projection.
    pub fn check(&self, items: &[&'static Item]) -> Result<(), Failure> {
        match self.is_given() && !matches!(items, [item] if item.is_projected()) {
            true => Err(Failure::usage(format!(
                "--share, --profile and --factor are of {PROJECTED} alone"
            ))),
            false => Ok(()),
        }
    }

    /// Returns the projection by a factor that is given; `None` where it has to be measured.
    pub fn without_measuring(&self) -> Result<Option<String>, Failure> {
        let Some(factor) = self.factor else {
            // What is wrong with the file is told before anything is measured.
            self.shares()?;
            return Ok(None);
        };
        let mut text = heading();
        self.add(&mut text, "given", factor)?;
        Ok(Some(text))
    }

    /// Returns the projection by what was measured; `None` where nothing was asked for.
    pub fn measured(&self, rows: &Rows) -> Result<Option<String>, Failure> {
        if !self.is_given() {
            return Ok(None);
        }
        let mut text = heading();
        for (place, factor) in rows.factors() {
            self.add(&mut text, &place, factor)?;
        }
        Ok(Some(text))
    }

    fn add(&self, text: &mut String, whose: &str, factor: f64) -> Result<(), Failure> {
        for (what, share) in self.shares()? {
            let gain = projected(share, factor);
            let _ = writeln!(
                text,
                "{share:>7.2} %  {factor:>7.3}  {gain:>7.3}  {what}; factor: {whose}"
            );
        }
        Ok(())
    }

    /// The shares, and whose they are.
    fn shares(&self) -> Result<Vec<(String, f64)>, Failure> {
        if let Some(share) = self.share {
            return Ok(vec![("as given".to_owned(), share)]);
        }
        if let Some(file) = &self.profile {
            let named = |error| Failure::usage(format!("{}: {error}", file.display()));
            let share = share_of_profile(&crate::results::read(file)?).map_err(named)?;
            return Ok(vec![("of the profile".to_owned(), share)]);
        }
        let shares = shares().into_iter();
        Ok(shares
            .map(|(what, share)| (format!("SNAP, {what}"), share))
            .collect())
    }
}

fn heading() -> String {
    "Projected by Amdahl's law: it validates nothing but the arithmetic.\n    share   factor     gain\n".to_owned()
}
