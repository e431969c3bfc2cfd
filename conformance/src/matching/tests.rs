use super::*;

#[test]
fn the_macro_lists_every_check() {
    let listed = crate::match_conformance!(@for_each names);
    let checks: Vec<&str> = CHECKS.iter().map(Check::name).collect();
    assert_eq!(listed.as_slice(), checks);
}
