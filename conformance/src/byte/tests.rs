use super::*;
use crate::{Verdict, run_all, tiers};

#[test]
fn the_macro_lists_every_check() {
    let listed = crate::transport_conformance!(@for_each names);
    let checks: Vec<&str> = CHECKS.iter().map(Check::name).collect();
    assert_eq!(listed.as_slice(), checks);
}

#[test]
fn a_factory_that_opens_nothing_fails() {
    let factory = Factory::new(2, |_| Err("no wire".to_owned()));
    for (check, verdict) in run_all(&factory) {
        assert_eq!(
            verdict,
            Verdict::Failed("no wire".to_owned()),
            "{}",
            check.name()
        );
    }
    assert!(tiers(&factory).is_err());
}
