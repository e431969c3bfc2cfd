//! The macros of the kits make a test of each check, and a factory that opens nothing fails them all.

use tagwire_conformance::{Check, Verdict, byte, matching, pml, run_all, tiers};

#[test]
fn the_macros_list_every_check() {
    let bytes: Vec<_> = byte::CHECKS.iter().map(Check::name).collect();
    assert_eq!(
        bytes,
        tagwire_conformance::transport_conformance!(@for_each names)
    );
    let matched: Vec<_> = matching::CHECKS.iter().map(Check::name).collect();
    assert_eq!(
        matched,
        tagwire_conformance::match_conformance!(@for_each names)
    );
    let layers: Vec<_> = pml::CHECKS.iter().map(Check::name).collect();
    assert_eq!(
        layers,
        tagwire_conformance::pml_conformance!(@for_each names)
    );
}

#[test]
fn a_selection_is_of_the_list() {
    let names: Vec<_> = pml::CHECKS.iter().map(Check::name).collect();
    let selection = tagwire_conformance::pml_conformance!(@selection names);
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
