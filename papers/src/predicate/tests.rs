use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;
use crate::judgement::Verdict;
use crate::rows::tests::of_rows;

const MPICH: &str = "MPICH Version: 5";
const OPEN_MPI: &str = "Open MPI v5, package";

/// Values over launches, at each of some sizes.
type Values<'a> = &'a [&'a [f64]];

/// Rows of a figure `x` whose sizes are powers of 4 from 1 on; each series with the fields that name it.
fn rows(series: &[(Value, Values<'_>)]) -> Rows {
    rows_by(4, series)
}

/// Those whose sizes are powers of another number.
fn rows_by(step: u64, series: &[(Value, Values<'_>)]) -> Rows {
    let mut all = Vec::new();
    for (fields, sizes) in series {
        for (power, values) in sizes.iter().enumerate() {
            for value in *values {
                let mut row = fields.clone();
                row["size"] = json!(step.pow(power as u32));
                row["x"] = json!(value);
                if row["transport"].is_null() {
                    row["transport"] = json!("shm");
                    row["pml"] = json!("ob1");
                }
                all.push(row);
            }
        }
    }
    of_rows(all)
}

fn unit(name: &str) -> Value {
    json!({ "unit": name })
}

fn other(item: &str, name: &str) -> Value {
    json!({ "unit": name, "of_item": item })
}

fn parts(partitions: u32) -> Value {
    json!({"policy": "each", "partitions": partitions, "noise": "single:4", "compute": "sleep:10000"})
}

fn late(partitions: u32) -> Value {
    json!({"policy": "each", "partitions": partitions, "noise": "single:4", "compute": "sleep:100000"})
}

fn layer(name: &str) -> Value {
    json!({"transport": "shm", "pml": name})
}

fn library(name: &str, unit: &str) -> Value {
    json!({"transport": "mpi", "library": name, "unit": unit})
}

fn network(unit: &str) -> Value {
    json!({"transport": "ofi:tcp", "pml": "ob1", "unit": unit})
}

fn verdict(claim: &str, rows: &Rows) -> Verdict {
    let predicate: Predicate = toml::from_str(claim).unwrap();
    let judged = predicate.judge(rows, None);
    assert_eq!(judged.len(), 1, "{claim}: {judged:?}");
    judged[0].verdict
}

/// A kind of predicate, with the series that it is about: those that meet it, and those that do not. What claims no shape is met by
/// constant series.
struct Kind {
    claim: &'static str,
    of: Vec<Value>,
    meets: Vec<Values<'static>>,
    fails: Vec<Values<'static>>,
    is_shape: bool,
}

const OF: &str = "{ partitions = 8, ms = 10, noise = 'single:4' }";
const LATE: &str = "{ partitions = 8, ms = 100, noise = 'single:4' }";
const TWO: &str = "{ partitions = 2, ms = 10, noise = 'single:4' }";

const ONE: &[f64] = &[1.0];
const TWICE: &[f64] = &[2.0];
const FLAT: Values<'static> = &[ONE, ONE, ONE, ONE];
const HIGH: Values<'static> = &[TWICE, TWICE, TWICE, TWICE];
const THRICE: Values<'static> = &[&[3.0], &[3.0], &[3.0], &[3.0]];
const FOUR: Values<'static> = &[&[4.0], &[4.0], &[4.0], &[4.0]];
const SIX: Values<'static> = &[&[6.0], &[6.0], &[6.0], &[6.0]];
const RISING: Values<'static> = &[&[1.0], &[2.0], &[3.0], &[4.0]];
const FALLING: Values<'static> = &[&[9.0, 10.0], &[8.0], &[2.0, 3.0], &[1.0]];
const PEAKED: Values<'static> = &[&[1.0], &[9.0], &[8.0], &[1.0]];

#[allow(clippy::too_many_lines, reason = "a table")]
fn kinds() -> Vec<Kind> {
    let shape =
        |claim, of: Vec<Value>, meets: Vec<Values<'static>>, fails: Vec<Values<'static>>| Kind {
            claim,
            of,
            meets,
            fails,
            is_shape: true,
        };
    let plain =
        |claim, of: Vec<Value>, meets: Vec<Values<'static>>, fails: Vec<Values<'static>>| Kind {
            is_shape: false,
            ..shape(claim, of, meets, fails)
        };
    let layers = || vec![layer("ob1"), layer("cm")];
    let two = || vec![unit("a"), unit("b")];
    let numbers = || [2, 8, 16].map(parts).to_vec();
    vec![
        shape(
            "ratio = { of = 'ob1', over = 'cm', figure = 'x', size = 1, value = 2.0 }",
            layers(),
            vec![&[&[2.1]], &[ONE]],
            vec![&[&[0.5]], &[ONE]],
        ),
        shape(
            "below = { low = 'cm', high = 'ob1', figure = 'x', sizes = [1, 16] }",
            layers(),
            vec![HIGH, FLAT],
            vec![FLAT, HIGH],
        ),
        plain(
            "equal = { one = 'cm', other = 'ob1', figure = 'x', sizes = [1, 16] }",
            layers(),
            vec![FLAT, FLAT],
            vec![FLAT, HIGH],
        ),
        shape(
            "crossover = { low = 'cm', high = 'ob1', figure = 'x', value = 16 }",
            layers(),
            vec![RISING, &[TWICE, TWICE, TWICE, TWICE]],
            vec![FALLING, HIGH],
        ),
        plain(
            "least = { of = 'ob1', figure = 'x', sizes = [1, 64], value = 0.9 }",
            vec![layer("ob1")],
            vec![FLAT],
            vec![&[ONE, &[0.5]]],
        ),
        shape(
            "falls = { of = 'ob1', figure = 'x', small = [1, 4], large = [16, 64] }",
            vec![layer("ob1")],
            vec![FALLING],
            vec![RISING],
        ),
        shape(
            "drops = { of = 'ob1', figure = 'x', value = 4 }",
            vec![layer("ob1")],
            vec![FALLING],
            vec![RISING],
        ),
        shape(
            "smoother = { of = 'ob1', than = 'cm', figure = 'x', sizes = [1, 64] }",
            layers(),
            vec![RISING, PEAKED],
            vec![PEAKED, RISING],
        ),
        shape(
            "projected = { fast = 'cm', slow = 'ob1', figure = 'x', size = 1, share = 50.0, value = 33.3 }",
            layers(),
            vec![&[TWICE], &[ONE]],
            vec![&[ONE], &[TWICE]],
        ),
        shape(
            "units.below = { low = 'a', high = 'b', figure = 'x' }",
            two(),
            vec![FLAT, HIGH],
            vec![HIGH, FLAT],
        ),
        plain(
            "units.equal = { one = 'a', other = 'b', figure = 'x' }",
            two(),
            vec![FLAT, FLAT],
            vec![FLAT, HIGH],
        ),
        plain(
            "units.least = { of = 'a', figure = 'x', value = 0.9 }",
            vec![unit("a")],
            vec![RISING],
            vec![&[&[0.8]]],
        ),
        plain(
            "units.most = { of = 'a', figure = 'x', value = 1.1 }",
            vec![unit("a")],
            vec![FLAT],
            vec![RISING],
        ),
        shape(
            "units.peak = { of = 'a', figure = 'x', value = 4.0 }",
            vec![unit("a")],
            vec![RISING],
            vec![FALLING],
        ),
        plain(
            "units.reaches = { of = 'a', figure = 'x', value = 4.0 }",
            vec![unit("a")],
            vec![RISING],
            vec![FLAT],
        ),
        plain(
            "units.range = { of = ['a', 'b'], figure = 'x', low = 0.9, high = 2.0 }",
            two(),
            vec![FLAT, HIGH],
            vec![SIX, FALLING],
        ),
        plain(
            "units.range = { of = ['a'], figure = 'x', low = 0.9, high = 2.0, bound = true }",
            vec![unit("a")],
            vec![FLAT],
            vec![SIX],
        ),
        shape(
            "units.rises = { of = 'a', figure = 'x' }",
            vec![unit("a")],
            vec![RISING],
            vec![FALLING],
        ),
        plain(
            "units.exactly = { of = 'a', figure = 'x', value = 1.0 }",
            vec![unit("a")],
            vec![FLAT],
            vec![&[ONE, &[1.0, 1.1]]],
        ),
        plain(
            "units.close = { one = 'a', other = 'b', figure = 'x', within = 0.5, simulated = 0.1 }",
            two(),
            vec![FLAT, FLAT],
            vec![FLAT, HIGH],
        ),
        shape(
            "units.crossover = { low = 'a', high = 'b', figure = 'x', value = 16 }",
            two(),
            vec![FALLING, &[&[5.0], &[5.0], &[5.0], &[5.0]]],
            vec![RISING, HIGH],
        ),
        shape(
            "units.nears = { of = 'a', over = 'b', figure = 'x' }",
            two(),
            vec![FALLING, FLAT],
            vec![RISING, FLAT],
        ),
        shape(
            "effects.ratio = { of = 'a', over = 'b', figure = 'x', size = 1, value = 2.0 }",
            two(),
            vec![HIGH, FLAT],
            vec![FLAT, HIGH],
        ),
        shape(
            "effects.quotient = { of = 'a', over = 'b', figure = 'x', size = 1, least = [3, 2], most = [5, 2] }",
            two(),
            vec![HIGH, FLAT],
            vec![FLAT, HIGH],
        ),
        shape(
            "effects.lower = { of = 'a', than = 'b', figure = 'x', size = 1, value = 50 }",
            two(),
            vec![FLAT, HIGH],
            vec![HIGH, FLAT],
        ),
        shape(
            "effects.loses = { of = 'a', than = 'b', figure = 'x', size = 1, value = 50 }",
            two(),
            vec![&[&[0.7]], HIGH],
            vec![&[&[1.5]], HIGH],
        ),
        shape(
            "effects.smaller = { of = 'a', than = 'b', item = 'p/i', figure = 'x', size = 1 }",
            vec![unit("a"), unit("b"), other("p/i", "a"), other("p/i", "b")],
            vec![&[&[0.9]], FLAT, &[&[0.5]], FLAT],
            vec![&[&[0.5]], FLAT, &[&[0.9]], FLAT],
        ),
        shape(
            "effects.gain = { of = 'a', figure = 'x', size = 1, shares = [6, 50], factor = 4 }",
            vec![unit("a")],
            vec![&[&[4.0]]],
            vec![FLAT],
        ),
        shape(
            "effects.between = { of = 't', over = 'p', figure = 'x', low = 'MPICH', high = 'Open MPI' }",
            vec![
                library(MPICH, "p"),
                library(MPICH, "t"),
                library(OPEN_MPI, "p"),
                library(OPEN_MPI, "t"),
            ],
            vec![FLAT, FLAT, FLAT, HIGH],
            vec![FLAT, HIGH, FLAT, FLAT],
        ),
        shape(
            "effects.masked = { of = 't', over = 'p', figure = 'x', size = 1 }",
            vec![unit("t"), unit("p"), network("t"), network("p")],
            vec![FLAT, HIGH, &[&[1.8]], HIGH],
            vec![&[&[1.8]], HIGH, FLAT, HIGH],
        ),
        plain(
            "parts.within = { of = OF, figure = 'x', sizes = [1, 64], range = [1.0, 2.0] }",
            vec![parts(8)],
            vec![&[ONE, TWICE, ONE, ONE]],
            vec![FLAT],
        ),
        plain(
            "parts.within = { of = OF, figure = 'x', sizes = [1, 64], range = [1.0, 1.6], bound = true }",
            vec![parts(8)],
            vec![FLAT],
            vec![FALLING],
        ),
        shape(
            "parts.peak = { of = OF, figure = 'x', sizes = [1, 64], value = 9.0 }",
            vec![parts(8)],
            vec![PEAKED],
            vec![RISING],
        ),
        shape(
            "parts.rises = { of = OF, partitions = [2, 8, 16], figure = 'x', sizes = [1, 64] }",
            numbers(),
            vec![FLAT, HIGH, THRICE],
            vec![THRICE, HIGH, FLAT],
        ),
        shape(
            "parts.sizes = { of = OF, figure = 'x', rises = true }",
            vec![parts(8)],
            vec![RISING],
            vec![FALLING],
        ),
        shape(
            "parts.jumps = { of = OF, partitions = [2, 8, 16], figure = 'x', sizes = [1, 64] }",
            numbers(),
            vec![FLAT, HIGH, SIX],
            vec![FLAT, HIGH, FOUR],
        ),
        shape(
            "parts.peaks = { of = OF, figure = 'x' }",
            vec![parts(8)],
            vec![PEAKED],
            vec![&[&[9.0], &[8.0], &[2.0], &[1.0]]],
        ),
        shape(
            "parts.drops = { of = OF, figure = 'x', value = 8 }",
            vec![parts(8)],
            vec![FALLING],
            vec![&[&[9.0], &[1.0], &[1.0], &[1.0]]],
        ),
        shape(
            "parts.later = { of = LATE, than = OF, figure = 'x' }",
            vec![late(8), parts(8)],
            vec![FALLING, &[&[9.0], ONE, ONE, ONE]],
            vec![&[&[9.0], ONE, ONE, ONE], FALLING],
        ),
        shape(
            "parts.together = { of = OF, figure = 'x', peak = 'x' }",
            vec![parts(8)],
            vec![&[&[3.0], &[9.0], ONE, ONE]],
            vec![&[ONE, &[9.0], &[8.0], &[7.0], ONE]],
        ),
        shape(
            "parts.window = { of = OF, figure = 'x', wire = LATE, bandwidth = 'x', part = 1.0 }",
            vec![parts(8), late(8)],
            // 400 us at 0.01 MB/s are 4 B.
            vec![FALLING, &[&[0.01]]],
            vec![FALLING, &[&[40.0]]],
        ),
        shape(
            "parts.below = { low = OF, high = TWO, figure = 'x', sizes = [1, 64] }",
            vec![parts(8), parts(2)],
            vec![FLAT, HIGH],
            vec![HIGH, FLAT],
        ),
        plain(
            "parts.below = { low = OF, high = TWO, figure = 'x', sizes = [1, 64], not = true }",
            vec![parts(8), parts(2)],
            vec![FLAT, FLAT],
            vec![FLAT, HIGH],
        ),
        plain(
            "parts.equal = { one = OF, other = TWO, figure = 'x', sizes = [1, 64] }",
            vec![parts(8), parts(2)],
            vec![FLAT, FLAT],
            vec![FLAT, HIGH],
        ),
        shape(
            "parts.begins = { of = OF, over = TWO, figure = 'x', value = 4 }",
            vec![parts(8), parts(2)],
            vec![RISING, FLAT],
            vec![FLAT, RISING],
        ),
        plain(
            "parts.least = { of = OF, figure = 'x', sizes = [1, 64], value = 0.5 }",
            vec![parts(8)],
            vec![FLAT],
            vec![&[ONE, &[0.4]]],
        ),
        shape(
            "parts.until = { of = OF, figure = 'x', least = 5.0, value = 8 }",
            vec![parts(8)],
            vec![FALLING],
            vec![FLAT],
        ),
    ]
}

fn claim_of(kind: &Kind) -> String {
    let claim = kind.claim.replace("= OF", &format!("= {OF}"));
    claim
        .replace("= LATE", &format!("= {LATE}"))
        .replace("= TWO", &format!("= {TWO}"))
}

fn with(kind: &Kind, values: &[Values<'_>]) -> Rows {
    let series: Vec<_> = kind
        .of
        .iter()
        .cloned()
        .zip(values.iter().copied())
        .collect();
    // Where something falls is told in steps of 2.
    let is_fine = ["drops", "window", "together"]
        .iter()
        .any(|word| kind.claim.contains(word));
    rows_by(if is_fine { 2 } else { 4 }, &series)
}

#[test]
fn each_kind_is_met_by_one_series_and_not_by_another() {
    for kind in kinds() {
        let claim = claim_of(&kind);
        assert_eq!(kind.meets.len(), kind.of.len(), "{claim}");
        assert_eq!(
            verdict(&claim, &with(&kind, &kind.meets)),
            Verdict::Holds,
            "{claim}"
        );
        assert_eq!(
            verdict(&claim, &with(&kind, &kind.fails)),
            Verdict::Fails,
            "{claim}"
        );
    }
}

#[test]
fn constant_series_meet_no_shape() {
    for kind in kinds().into_iter().filter(|kind| kind.is_shape) {
        let claim = claim_of(&kind);
        let constant: Vec<Values<'_>> = kind.of.iter().map(|_| FLAT).collect();
        assert_eq!(
            verdict(&claim, &with(&kind, &constant)),
            Verdict::Fails,
            "{claim}"
        );
    }
}

/// Launches that scatter over all of the values decide nothing, but where even those are far away.
#[test]
fn noise_decides_nothing() {
    let noise: &[f64] = &[0.02, 60.0];
    let noisy: Values<'_> = &[noise, noise, noise, noise, noise];
    for kind in kinds() {
        let claim = claim_of(&kind);
        let all: Vec<Values<'_>> = kind.of.iter().map(|_| noisy).collect();
        let found = verdict(&claim, &with(&kind, &all));
        let is_told = claim.starts_with("units.exactly") || found == Verdict::Undecided;
        assert!(is_told, "{claim}: {found:?}");
    }
}

#[test]
fn without_rows_nothing_is_said() {
    for kind in kinds() {
        let claim = claim_of(&kind);
        assert_eq!(
            verdict(&claim, &Rows::default()),
            Verdict::NotTestable,
            "{claim}"
        );
    }
}

/// The table has each kind that a claim can have.
#[test]
fn the_table_has_all_kinds_that_claims_have() {
    let key = |table: &toml::Table| -> Option<String> {
        let plain = [
            "ratio",
            "below",
            "equal",
            "crossover",
            "least",
            "falls",
            "drops",
            "smoother",
            "projected",
        ];
        let (name, value) = table.iter().find(|(name, _)| {
            plain.contains(&name.as_str()) || ["units", "effects", "parts"].contains(&name.as_str())
        })?;
        match value.as_table() {
            Some(inner) if inner.len() == 1 => Some(format!("{name}.{}", inner.keys().next()?)),
            _ => Some(name.clone()),
        }
    };
    let of_table: BTreeSet<String> = kinds()
        .iter()
        .filter_map(|kind| key(&toml::from_str(&claim_of(kind)).unwrap()))
        .collect();
    let items: toml::Table = toml::from_str(include_str!("../../data/items.toml")).unwrap();
    let mut of_claims = BTreeSet::new();
    for item in items["item"].as_array().unwrap() {
        let claims = item.get("claim").and_then(toml::Value::as_array);
        for claim in claims.into_iter().flatten() {
            of_claims.insert(key(claim.as_table().unwrap()).unwrap());
        }
    }
    let missing: Vec<_> = of_claims.difference(&of_table).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// A published range is not met by figures that lie in it, and all far from its end. Sizes that were not measured may have that one.
#[test]
fn ranges_have_an_end_that_is_reached() {
    let of = |more: &str, values: Values<'_>| {
        let claim =
            format!("units.range = {{ of = ['a'], figure = 'x', low = 1.7, high = 53.0{more} }}");
        verdict(&claim, &rows(&[(unit("a"), values)]))
    };
    let low: Values<'_> = &[&[2.0], &[22.2]];
    assert_eq!(of("", low), Verdict::Fails);
    assert_eq!(of(", sizes = [1, 64]", low), Verdict::Undecided);
    assert_eq!(of(", bound = true", low), Verdict::Holds);
    assert_eq!(of("", &[&[2.0], &[50.0]]), Verdict::Holds);
}

/// A simulation does not scatter: its figures lie between the published ends or not.
#[test]
fn ranges_of_simulations_are_not_widened() {
    let claim = "units.range = { of = ['a'], figure = 'speedup_pct', low = '001/fig5c/speedup/p2p/from-1mi/min', high = '001/fig5c/speedup/p2p/from-1mi/max' }";
    let predicate: Predicate = toml::from_str(claim).unwrap();
    let of = |transport: &str, values: [f64; 3]| {
        let row = |(size, value): (u64, f64)| json!({"transport": transport, "pml": "ob1", "unit": "a", "size": size, "speedup_pct": value});
        let rows = of_rows((0..).zip(values).map(row).collect());
        predicate.judge(&rows, None)[0].verdict
    };
    let near_zero = [-0.984, 0.415, -0.2];
    assert_eq!(of("sim:mutrino", near_zero), Verdict::Fails);
    assert_eq!(
        of("ofi:tcp", near_zero),
        Verdict::Fails,
        "nothing comes near -7.4"
    );
    assert_eq!(of("sim:mutrino", [-1.2, -3.0, -7.0]), Verdict::Holds);
    // Within 3 points of them.
    assert_eq!(of("ofi:tcp", [1.2, -3.0, -9.0]), Verdict::Holds);
    assert_eq!(of("sim:mutrino", [1.2, 1.3, -7.0]), Verdict::Fails);
}

/// Ratios of two series are those of launches that both have, not of the worst of all.
#[test]
fn ratios_are_of_launches() {
    let claim = "effects.ratio = { of = 'a', over = 'b', figure = 'x', size = 1, value = 2.0 }";
    let row = |unit: &str, launch: u32, value: f64| json!({"transport": "shm", "pml": "ob1", "unit": unit, "size": 1, "launch": launch, "x": value});
    let mut rows = Rows::default();
    let of = [row("a", 0, 2.0), row("a", 1, 8.0)];
    let over = [row("b", 0, 1.0), row("b", 1, 4.0)];
    rows.add_stored([of, over].concat(), false);
    assert_eq!(verdict(claim, &rows), Verdict::Holds);
    // Launches of different runs are not the same ones.
    let [of, over] = [
        [row("a", 0, 2.0), row("a", 1, 8.0)],
        [row("b", 0, 1.0), row("b", 1, 4.0)],
    ];
    let mut rows = Rows::default();
    rows.add_stored(of.to_vec(), false);
    rows.add_stored(over.to_vec(), false);
    assert_eq!(verdict(claim, &rows), Verdict::Undecided);
}

/// Rows of launches whose cores were placed to each other in another way than most are left out.
#[test]
fn placings_are_not_pooled() {
    let row = |launch: u32, line_ns: f64, value: f64| {
        json!({"transport": "shm", "pml": "ob1", "unit": "a", "size": 1, "launch": launch, "x": value,
            "line_transfer_ns": line_ns, "line_transfer_after_ns": line_ns})
    };
    let rows = of_rows(vec![
        row(0, 10.0, 1.0),
        row(1, 10.0, 1.1),
        row(2, 100.0, 9.0),
    ]);
    let kept = rows.of_one_placing("x", true).unwrap();
    assert_eq!(kept.own().count(), 2);
    assert!(kept.of_one_placing("x", true).is_none());
    // One of each is no choice.
    let both = of_rows(vec![row(0, 10.0, 1.0), row(1, 100.0, 9.0)]);
    assert!(both.of_one_placing("x", true).is_none());
    // A series of which one launch of three would be left has all.
    let mut other = [row(0, 10.0, 1.0), row(1, 100.0, 2.0), row(2, 100.0, 3.0)];
    for row in &mut other {
        row["unit"] = "b".into();
    }
    let most = [10.0, 10.0, 10.0, 10.0].map(|line_ns| row(0, line_ns, 1.0));
    let uneven = of_rows([&most[..], &other].concat());
    assert!(uneven.of_one_placing("x", true).is_none());
    assert!(rows.of_one_placing("y", true).is_none());
}

/// An MPI library on shared memory is not judged beside a network of ours.
#[test]
fn peers_stand_beside_the_same_kind_of_way() {
    let claim = "below = { low = 'peer', high = 'ob1', figure = 'x', sizes = [1, 1] }";
    let predicate: Predicate = toml::from_str(claim).unwrap();
    let peer =
        |is_over_tcp: bool| json!({"transport": "mpi", "library": MPICH, "over_tcp": is_over_tcp});
    let tcp = || json!({"transport": "ofi:tcp", "pml": "ob1"});
    let on = |all: &Rows| {
        let judged = predicate.judge(all, None);
        judged.into_iter().map(|one| one.on).collect::<Vec<_>>()
    };
    let all = rows(&[
        (layer("ob1"), HIGH),
        (tcp(), HIGH),
        (layer("ob1"), HIGH),
        (peer(false), FLAT),
        (peer(true), FLAT),
    ]);
    assert_eq!(
        on(&all),
        ["shm beside MPICH 5", "ofi:tcp beside MPICH 5 over TCP"]
    );
    assert_eq!(on(&rows(&[(tcp(), HIGH), (peer(false), FLAT)])), [""]);
}

/// A place where none of a claim's series was measured is not listed.
#[test]
fn places_without_a_series_are_left_out() {
    let claim = "units.least = { of = 'a', figure = 'x', value = 0.5 }";
    let predicate: Predicate = toml::from_str(claim).unwrap();
    let judged = predicate.judge(&rows(&[(unit("a"), FLAT), (network("b"), FLAT)]), None);
    assert_eq!(judged.len(), 1, "{judged:?}");
}

#[test]
fn nothing_is_smaller_than_no_loss() {
    let claim = "effects.smaller = { of = 'a', than = 'b', item = 'p/i', figure = 'x', size = 1 }";
    let of = |there: &'static [f64]| {
        rows(&[
            (unit("a"), &[&[1.05]]),
            (unit("b"), FLAT),
            (other("p/i", "a"), &[there]),
            (other("p/i", "b"), FLAT),
        ])
    };
    assert_eq!(verdict(claim, &of(&[0.98])), Verdict::Fails);
    assert_eq!(verdict(claim, &of(&[0.8])), Verdict::Holds);
}

/// MPI libraries are judged one by one.
#[test]
fn peers_are_not_pooled() {
    let claim = "below = { low = 'peer', high = 'ob1', figure = 'x', sizes = [1, 1] }";
    let predicate: Predicate = toml::from_str(claim).unwrap();
    let peer = |library: &str| json!({"transport": "mpi", "library": library});
    let all = rows(&[
        (layer("ob1"), HIGH),
        (peer(MPICH), FLAT),
        (peer(OPEN_MPI), &[&[3.0]]),
    ]);
    let judged = predicate.judge(&all, None);
    let told: Vec<_> = judged.iter().map(|one| (&*one.on, one.verdict)).collect();
    assert_eq!(
        told,
        [
            ("shm beside MPICH 5", Verdict::Holds),
            ("shm beside Open MPI 5", Verdict::Fails)
        ]
    );
    let none = predicate.judge(&rows(&[(layer("ob1"), FLAT)]), None);
    assert!(none[0].evidence.contains("-t mpi:PREFIX"));
}

/// What a star stands for is judged by itself, on each place; a library has a name of its own for it.
#[test]
fn stars_are_each_judged() {
    let claim = "units.below = { low = 'multiple@4', high = 'partitioned:*@4', figure = 'x' }";
    let predicate: Predicate = toml::from_str(claim).unwrap();
    let all = rows(&[
        (unit("multiple@4"), FLAT),
        (unit("partitioned:default@4"), HIGH),
        (unit("partitioned:messages@4"), FLAT),
        (unit("partitioned:default/artefact@4"), HIGH),
        (library(MPICH, "multiple@4"), FLAT),
        (library(MPICH, "partitioned:library@4"), HIGH),
    ]);
    let judged = predicate.judge(&all, None);
    let told: Vec<_> = judged.iter().map(|one| (&*one.on, one.verdict)).collect();
    assert_eq!(
        told,
        [
            ("shm (ob1), default", Verdict::Holds),
            ("shm (ob1), messages", Verdict::Fails),
            ("MPICH 5", Verdict::Holds),
        ]
    );
}

#[test]
fn claims_of_networks_leave_out_shared_memory() {
    let claim = "units.least = { of = 'a', figure = 'x', value = 0.5 }";
    let predicate: Predicate = toml::from_str(claim).unwrap();
    let mut over_tcp = library(MPICH, "a");
    over_tcp["over_tcp"] = json!(true);
    let all = rows(&[
        (unit("a"), FLAT),
        (network("a"), FLAT),
        (library(MPICH, "a"), FLAT),
        (over_tcp, FLAT),
    ]);
    let on = |on| {
        let judged = predicate.judge(&all, Some(on));
        judged.into_iter().map(|one| one.on).collect::<Vec<_>>()
    };
    assert_eq!(on(On::Network), ["ofi:tcp (ob1)", "MPICH 5 over TCP"]);
    assert_eq!(on(On::Shared), ["shm (ob1)", "MPICH 5"]);
}
