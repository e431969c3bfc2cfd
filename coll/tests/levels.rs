//! Groups on several hosts: two levels against a serial oracle, for any way in which ranks lie on hosts.

use std::sync::Arc;

use crate::common::cases::cases;
use crate::common::{FIXED, on_hosts, rounds};

use tagwire_coll::{Selection, Team};

/// The host of each rank.
const PLACEMENTS: [&[u32]; 7] = [
    &[0, 0, 1, 1],
    &[5, 5, 5, 9, 9, 1, 1, 1],
    &[0, 1, 0, 1, 0, 1],
    &[2, 0, 1, 0, 0, 2, 2],
    &[0, 1, 1, 1, 1],
    &[3, 3, 3, 3],
    &[0, 1, 2],
];

const TWO_LEVEL: &str =
    "allgather:two-level,allreduce:two-level,broadcast:two-level,reduce:two-level";
const LANES: &str = "allreduce:multi-lane";

fn everything(team: &Arc<Team>) {
    for round in 0..rounds(16) {
        for mut case in cases(team, round) {
            match round % 2 {
                0 => case.start(team).wait(None).unwrap(),
                _ => case.block(team),
            }
            case.check();
        }
    }
}

#[test]
fn each_placement_by_each_algorithm() {
    for hosts in PLACEMENTS {
        for forced in ["", TWO_LEVEL, LANES, "fixed,"] {
            assert!(!forced.ends_with(',') || forced == FIXED);
            on_hosts(hosts, forced, everything);
        }
    }
}

/// Groups of groups have levels of their own, or none.
#[test]
fn groups_of_groups_have_hosts_too() {
    for hosts in PLACEMENTS {
        on_hosts(hosts, TWO_LEVEL, |team| {
            let (me, size) = (team.me(), team.size());
            let reversed = team.split(Some(0), -(me as i32)).unwrap().unwrap();
            everything(&Arc::new(reversed));
            let on_host = team.split(Some(hosts[me]), 0).unwrap().unwrap();
            assert!(on_host.size() < size || hosts[0] == 3);
            everything(&Arc::new(on_host));
            let but_first = team.split((me > 0).then_some(0), 0).unwrap();
            if let Some(rest) = but_first {
                everything(&Arc::new(rest));
            }
            everything(team);
        });
    }
}

/// Several under way at once, which end in any order.
#[test]
fn operations_of_both_levels_do_not_meet() {
    for hosts in PLACEMENTS {
        on_hosts(hosts, "", |team| {
            let mut open: Vec<_> = (0..6).flat_map(|round| cases(team, round)).collect();
            let requests: Vec<_> = open.iter_mut().map(|case| case.start(team)).collect();
            for request in requests.iter().rev() {
                request.wait(None).unwrap();
            }
            open.iter().for_each(|case| case.check());
        });
    }
}

#[test]
fn a_job_on_one_host_has_one_level() {
    let one = Selection::default().with_hosts(&[4, 4, 4], true);
    assert_eq!(one, Selection::default().on_one_host(true));
}
