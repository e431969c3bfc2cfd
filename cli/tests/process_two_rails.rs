//! Two hosts with two cables between them, of which one is pulled.
use crate::process::has_libfabric;
use crate::process::hosts::Hosts;

/// The cable that is pulled comes first: short messages go by it.
const RAILS: &str = "ofi:tcp;ofi_rxm@eth1+ofi:tcp;ofi_rxm@eth0";

#[test]
fn a_run_outlives_one_of_its_cables() {
    let test = "a_run_outlives_one_of_its_cables";
    let Some(hosts) = Hosts::make(test, 3, 2).filter(|_| has_libfabric(test)) else {
        return;
    };
    // The job's store is reached by the other cable.
    let place = format!("{}:7471", hosts.address(0));
    let options = ["-t", RAILS, "-m", "8,64K,1M", "-i", "100", "-c"];
    let patience = ["--rail-patience", "500ms", "--log", "warn"];
    let mut listener = hosts.listens(&place, &[&options[..], &patience].concat());
    let connector = hosts.connects(&place, &[]);
    // What is left to do is far more than fits into the time until the cable is pulled.
    listener.hear("# Size");
    hosts.cut_the_cable(1);
    let outcome = listener.finish();
    assert_eq!(outcome.status, 0, "{outcome:#?}");
    let rows = outcome.stdout.iter().filter(|line| !line.starts_with('#'));
    assert_eq!(rows.count(), 3, "{outcome:#?}");
    let other = connector.finish();
    assert_eq!(other.status, 0, "{other:#?}");
    // It was noticed, and not by chance over when it happened.
    let said = outcome.errors() + &other.errors();
    assert!(said.contains("given up"), "{said}");
}
