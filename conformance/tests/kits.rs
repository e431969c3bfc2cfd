//! The macros of the kits make a test of each check, and a factory that opens nothing fails them all.

use tagwire_conformance::{Check, Verdict, byte, pml, run_all, tiers};

#[test]
fn a_selection_has_the_marked_checks_alone() {
    let names: Vec<_> = pml::CHECKS.iter().map(Check::name).collect();
    assert_eq!(
        names,
        tagwire_conformance::pml_conformance!(@for_each names)
    );
    let selection = tagwire_conformance::pml_conformance!(@selection names);
    assert_eq!((names.len(), selection.len()), (85, 20));
    assert!(selection.iter().all(|name| names.contains(name)));
}

#[test]
fn a_factory_that_opens_nothing_fails() {
    let factory = byte::Factory::new(2, |_| Err("no wire".to_owned()));
    for (check, verdict) in run_all(&factory) {
        let failed = Verdict::Failed("no wire".to_owned());
        assert_eq!(verdict, failed, "{}", check.name());
    }
    assert!(tiers(&factory).is_err());
}
