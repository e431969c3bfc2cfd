use std::collections::BTreeSet;

use tagwire_bench::Sizes;

use super::*;
use crate::choice::Choice;
use crate::judgement::Judgement;
use crate::known::without_effect;
use crate::reference::{Number, line_of, nearest};
use crate::rows::tests::of_rows;

#[test]
fn every_measured_figure_is_there_once() {
    let mut names: Vec<_> = all().iter().map(|item| &item.name).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), all().len());
    let of_papers = || all().iter().filter(|item| !item.has_tables());
    assert_eq!(of_papers().count(), 39);
    for item in of_papers() {
        let is_real = item.needs == Needs::Real;
        assert_eq!(is_real, item.why.is_none(), "{}", item.name);
        assert_eq!(is_real, !item.runs.is_empty(), "{}", item.name);
        assert!(!item.claims.is_empty(), "{}", item.name);
        let has_reason = |claim: &Claim| match is_real {
            true => claim.reason.is_some(),
            // What is an input cannot fail.
            false => claim.sim_reason.is_some() || claim.fitted || claim.no_sim.is_some(),
        };
        let has_reasons = item.claims.iter().all(has_reason);
        assert!(has_reasons, "{}: what fails is explained", item.name);
    }
}

#[test]
fn runs_have_the_transports_and_quick_sizes() {
    let item = find("mtl/fig4").unwrap()[0];
    let transports = ["shm".to_owned(), "mpi:/opt".to_owned()];
    let runs = item.runs(&transports, "out", true);
    assert_eq!(runs.len(), 3);
    let words = runs[2].arguments.join(" ");
    let line = "message-rate -m 1:8K -W 64 -t mpi:/opt --launches 3 --keep-going --timeout 1800";
    assert_eq!(words, line);
    let hangs = find("partitioned/fig4").unwrap()[0].runs(&transports, "out", false);
    let words = hangs[1].arguments.join(" ");
    assert!(words.ends_with("--keep-going --timeout 150"), "{words}");
    // Beside ours over a network they are told to use one.
    let with_network = [&transports[..], &["ofi:tcp".to_owned()]].concat();
    let all = item.runs(&with_network, "out", false);
    let over_tcp: Vec<bool> = all.iter().map(Run::is_over_tcp).collect();
    assert_eq!(over_tcp, [false, false, false, true]);
    assert_eq!(item.runs(&transports[..1], "out", false).len(), 2);
    let latency = find("mtl/fig2a").unwrap()[0].runs(&transports, "out", false);
    assert!(latency[0].arguments.contains(&"0,netpipe:8M".to_owned()));
    assert_eq!(find("mtl").unwrap().len(), 7);
    let bandwidth = find("threads/fig6").unwrap()[0];
    let quick = bandwidth.runs(&transports, "out", true);
    let words = quick[0].arguments.join(" ");
    let units = "--units processes:4,threads:4";
    let line = format!("concurrent-bandwidth -m 8M {units} -t shm -i 5 --launches 3");
    assert_eq!(words, line);
    // Where ranks are more than cores they are told to give way.
    let many = find("reduction/fig6").unwrap()[0].runs(&transports, "out", false);
    let told: Vec<usize> = many.iter().map(|run| run.environment.len()).collect();
    assert_eq!(told, [0, 4]);
    assert!(many[1].arguments.contains(&"mpi:/opt".to_owned()));
    // No network among the transports; peers are told to use one.
    let network = find("threads/fig5").unwrap()[0].runs(&transports, "out", false);
    assert_eq!(network.len(), 1);
    assert!(
        network[0]
            .environment
            .contains(&("OMPI_MCA_btl", "tcp,self"))
    );
    let arrivals = find("cmb/fig7").unwrap()[0].runs(&transports[..1], "out", false);
    for (name, _) in crate::ARRIVALS {
        let word = format!("kde:out/{name}");
        let is_read = arrivals.iter().any(|run| run.arguments.contains(&word));
        assert!(is_read, "{name}");
    }
    assert!(matches!(find("mtl/fig9"), Err(Error::NoItem(_))));
}

/// The words behind an option of a run; nothing where it has not.
fn option<'r>(run: &'r str, name: &str) -> Vec<&'r str> {
    let mut words = run.split_whitespace().skip_while(|word| *word != name);
    let list = words.nth(1).unwrap_or_default().split(',');
    list.filter(|word| !word.is_empty()).collect()
}

fn sizes(run: &str) -> Vec<u64> {
    let text = option(run, "-m").join(",");
    match text.is_empty() {
        true => vec![0],
        false => text.parse::<Sizes>().unwrap().as_slice().to_vec(),
    }
}

/// A claim is about sizes that its item measures in full runs: each end of a range lies among them, and so does a published size.
#[test]
fn the_sizes_of_claims_lie_in_the_full_grid() {
    for item in all().iter().filter(|item| item.needs == Needs::Real) {
        let grid: BTreeSet<u64> = item.runs.iter().flat_map(|run| sizes(run)).collect();
        for claim in &item.claims {
            for [first, last] in claim.predicate.sizes() {
                if (first, last) == (0, u64::MAX) {
                    continue;
                }
                let told = || {
                    format!(
                        "{}: {}: {first} to {last} in {grid:?}",
                        item.name, claim.says
                    )
                };
                let (least, most) = (*grid.first().unwrap(), *grid.last().unwrap());
                assert!(least <= first && last <= most, "{}", told());
                let is_published = claim
                    .predicate
                    .numbers()
                    .iter()
                    .any(|number| number.size() == first);
                let among = grid.range(first..=last).count();
                let wanted = usize::from(first < last) + usize::from(!is_published || first < last);
                assert!(among >= wanted, "{}", told());
            }
        }
    }
}

/// Units that the runs of an item have, by the options of its tests.
fn units_of(item: &Item) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for run in &item.runs {
        let one = |list: Vec<&str>, default: &[&str]| -> Vec<String> {
            let list = if list.is_empty() { default } else { &list };
            list.iter().map(|word| (*word).to_owned()).collect()
        };
        let threads = option(run, "--threads").join("");
        let test = run.split_whitespace().next().unwrap();
        let found: Vec<String> = match test {
            "thread-cost" => one(Vec::new(), &["processes:1", "threads:1"]),
            "short-long" => one(Vec::new(), &["processes:2", "threads:2"]),
            "overlap-neighbours" => one(option(run, "--progress"), &[]),
            "device-copy" => {
                let counts = one(option(run, "--partitions"), &[]);
                counts
                    .iter()
                    .map(|count| format!("copies:{count}"))
                    .collect()
            }
            "allreduce" => {
                let flops = one(option(run, "--flops-per-element"), &["1"]).concat();
                let callbacks = one(option(run, "--callback"), &["deferred"]);
                let names = one(option(run, "--algorithm"), &[]).into_iter();
                let names = names.flat_map(|name| match &*name {
                    "pr" => callbacks.iter().map(|how| format!("pr:{how}")).collect(),
                    _ => vec![name],
                });
                names.map(|name| format!("{name}/{flops}")).collect()
            }
            "sweep3d" | "halo3d" => {
                let policies = one(option(run, "--policy"), &["default"]).into_iter();
                let modes = policies.map(|policy| format!("partitioned:{policy}@{threads}"));
                let modes = modes.chain([format!("multiple@{threads}"), "single@1".to_owned()]);
                let accountings = one(option(run, "--accounting"), &["equal"]);
                let of = |mode: String| {
                    let (name, count) = mode.split_once('@').unwrap();
                    let as_counted = |how: &String| match &**how {
                        "equal" => mode.clone(),
                        how => format!("{name}/{how}@{count}"),
                    };
                    accountings.iter().map(as_counted).collect::<Vec<_>>()
                };
                modes.flat_map(of).collect()
            }
            "cmb" => {
                let ring = if run.contains(" --ring ") {
                    "-ring"
                } else {
                    ""
                };
                let stencil = option(run, "--stencil").concat();
                let stencil = if stencil.is_empty() {
                    String::new()
                } else {
                    format!("{stencil}-point{ring}/")
                };
                let arrivals = option(run, "--arrivals").concat();
                let density = arrivals
                    .strip_prefix("kde:{arrivals}/")
                    .and_then(|it| it.strip_suffix(".csv"));
                let before = match density {
                    Some(name) => format!("kde:{name}/{stencil}"),
                    None if arrivals.starts_with("kernel:") => format!("{arrivals}/"),
                    None => stencil,
                };
                let interfaces = one(option(run, "--interface"), &["p2p"]);
                let pieces = one(option(run, "--granularity"), &[]).into_iter();
                let named = pieces.flat_map(|piece| {
                    let is_early = !piece.starts_with("bsp");
                    interfaces
                        .iter()
                        .filter_map(move |interface| match &**interface {
                            "p2p" => Some(piece.clone()),
                            "rma" if is_early => Some(format!("{piece}:rma")),
                            _ => None,
                        })
                        .collect::<Vec<_>>()
                });
                named
                    .map(|name| format!("{before}{name}@{threads}"))
                    .collect()
            }
            _ => one(option(run, "--units"), &[]),
        };
        all.extend(found);
        if run.contains(" --profile ") {
            all.insert("profile".to_owned());
        }
    }
    all
}

/// Returns the file and the line of a claim of an item.
fn place_of(item: &Item, claim: &Claim) -> String {
    let file = include_str!("../../data/items.toml");
    let name = format!("name = \"{}\"", item.name);
    let before = file.find(&name).unwrap_or(0);
    let says = claim.says.replace('"', "\\\"");
    let line = line_of(&file[before..], &says) + file[..before].lines().count();
    format!("papers/data/items.toml:{line}")
}

#[test]
fn places_of_claims_are_lines_of_the_file() {
    let item = find("mtl/fig4").unwrap()[0];
    let place = place_of(item, &item.claims[2]);
    let line: usize = place.rsplit(':').next().unwrap().parse().unwrap();
    let file = include_str!("../../data/items.toml");
    let told = file.lines().nth(line - 1).unwrap();
    assert!(told.contains(&item.claims[2].says), "{place}: {told}");
}

/// A predicate that names a series that is not there is told with the nearest right name.
#[test]
fn the_units_of_claims_are_measured() {
    for item in all().iter().filter(|item| item.needs == Needs::Real) {
        for claim in &item.claims {
            let units = match &claim.predicate {
                Predicate::Units(comparison) => comparison.units(),
                Predicate::Effects(effect) => effect.units(),
                _ => continue,
            };
            for unit in units {
                let (item, unit) = match unit.split_once(' ') {
                    Some((other, unit)) => {
                        assert!(
                            item.with.iter().any(|with| with == other),
                            "{}: {}",
                            item.name,
                            claim.says
                        );
                        (find(other).unwrap()[0], unit)
                    }
                    None => (item, unit),
                };
                let known = units_of(item);
                let policies = ["default", "messages", "direct", "deferred"];
                let is_there = policies
                    .iter()
                    .any(|star| known.contains(&unit.replace('*', star)));
                let near = nearest(unit, known.iter().map(String::as_str));
                assert!(
                    is_there,
                    "{}: {}: '{unit}' is not measured; the nearest is '{near}'",
                    place_of(item, claim),
                    claim.says
                );
            }
        }
    }
}

/// Figures are those of `bench`, with the nearest right name where one is not.
#[test]
fn the_figures_of_claims_are_known() {
    let mut known: BTreeSet<String> = BTreeSet::new();
    for quantity in tagwire_bench::Quantity::ALL {
        let (least, greatest) = quantity.bounds();
        known.extend([quantity.key(), least, greatest]);
        known.insert(format!("{}_spread_pct", quantity.stem));
    }
    // Those of patterns and of skeletons that are no quantities of tables, and the share of a profile.
    let others = [
        "allreduce_pct",
        "alltoall_pct",
        "arrival_skewness",
        "arrival_spread_pct",
        "collectives_pct",
        "isend_pct",
        "kolmogorov_excess",
        "long_messages",
        "messages",
        "ratio_to_single",
        "sendrecv_pct",
        "share_pct",
        "wait_pct",
        "waitall_pct",
    ];
    known.extend(others.map(str::to_owned));
    for item in all() {
        for claim in &item.claims {
            let figure = claim.predicate.figure();
            let near = nearest(figure, known.iter().map(String::as_str));
            assert!(
                known.contains(figure),
                "{}: {}: '{figure}' is no figure; the nearest is '{near}'",
                place_of(item, claim),
                claim.says
            );
        }
    }
}

/// So are numbers of partitions, computation, noise and caches, together in one run.
#[test]
fn the_partitions_of_claims_are_measured() {
    for item in all().iter().filter(|item| item.needs == Needs::Real) {
        for claim in &item.claims {
            let Predicate::Parts(parts) = &claim.predicate else {
                continue;
            };
            for choice in parts.choices() {
                let is_of = |run: &&String| is_chosen(run, &choice);
                let told = || {
                    let known: Vec<String> = chosen(item).map(|one| one.name()).collect();
                    let near = nearest(&choice.name(), known.iter().map(String::as_str)).to_owned();
                    let (place, name) = (place_of(item, claim), choice.name());
                    format!(
                        "{place}: {}: no run has '{name}'; the nearest is '{near}'",
                        claim.says
                    )
                };
                assert!(item.runs.iter().any(|run| is_of(&run)), "{}", told());
            }
        }
    }
}

/// The partitions that the runs of an item have.
fn chosen(item: &Item) -> impl Iterator<Item = Choice> {
    let all = item.runs.iter().flat_map(|run| {
        let list = |name: &str, default: &'static str| match option(run, name) {
            list if list.is_empty() => vec![default],
            list => list,
        };
        let mut all = Vec::new();
        for partitions in option(run, "--partitions") {
            for time in list("--compute-time", "0ms") {
                for noise in list("--noise", "none") {
                    for cache in list("--cache", "hot") {
                        let percent = option(run, "--noise-pct").concat();
                        all.push(Choice {
                            partitions: partitions.parse().unwrap(),
                            ms: time.trim_end_matches("ms").parse().unwrap(),
                            noise: (noise != "none").then(|| format!("{noise}:{percent}")),
                            cold: cache == "cold",
                        });
                    }
                }
            }
        }
        all
    });
    all.collect::<Vec<_>>().into_iter()
}

fn is_chosen(run: &str, choice: &Choice) -> bool {
    let has = |name: &str, value: &str| option(run, name).contains(&value);
    let (noise, percent) = match &choice.noise {
        Some(noise) => noise.split_once(':').unwrap(),
        None => ("none", ""),
    };
    let is_noise = match noise {
        "none" => option(run, "--noise").is_empty() || has("--noise", "none"),
        noise => has("--noise", noise) && has("--noise-pct", percent),
    };
    has("--partitions", &choice.partitions.to_string())
        && has("--compute-time", &format!("{}ms", choice.ms))
        && has("--cache", if choice.cold { "cold" } else { "hot" })
        && is_noise
}

/// Every published value is answered by a claim, drawn, or listed with the reason why it is not; and none twice over.
#[test]
fn published_values_are_answered_drawn_or_excused() {
    let mut answered = BTreeSet::new();
    let mut drawn = BTreeSet::new();
    for item in all() {
        for claim in &item.claims {
            answered.extend(claim.answers().map(|one| &*one.id));
        }
        drawn.extend(item.drawn().map(|one| &*one.id));
    }
    let excused: Vec<&str> = crate::published::unanswered()
        .iter()
        .flat_map(|one| one.ids())
        .collect();
    let all = crate::published::published();
    for one in all {
        let is_answered = answered.contains(&*one.id) || drawn.contains(&*one.id);
        let is_excused = excused.contains(&&*one.id);
        assert!(
            is_answered != is_excused,
            "{}: answered or drawn: {is_answered}, excused: {is_excused}",
            one.id
        );
    }
    let ids: BTreeSet<_> = all.iter().map(|one| &one.id).collect();
    assert_eq!((all.len(), ids.len()), (344, 344));
    assert_eq!((answered.union(&drawn).count(), excused.len()), (332, 12));
}

/// Numbers of predicates that a paper has are named, and stand nowhere else.
#[test]
fn published_numbers_are_not_typed_again() {
    for item in all() {
        let published: Vec<f64> = crate::published::of_figure(&item.figure)
            .filter_map(|one| one.value.as_f64())
            .collect();
        for claim in &item.claims {
            let text = claim.published.text();
            let is_told = !claim.published.of().is_empty() || text.starts_with("not published");
            assert!(is_told, "{}: {}: {text}", item.name, claim.says);
            for number in claim.predicate.numbers() {
                let is_typed = matches!(number, Number::Ours(value) if published.contains(&value));
                assert!(!is_typed, "{}: {}: {number:?}", item.name, claim.says);
            }
        }
    }
}

/// Places of rows: ours on shared memory and on a network, and libraries on either.
const PLACES: [&str; 7] = [
    r#""transport": "shm", "pml": "ob1""#,
    r#""transport": "shm", "pml": "cm""#,
    r#""transport": "ofi:tcp", "pml": "ob1""#,
    r#""transport": "ofi:tcp", "pml": "cm""#,
    r#""transport": "mpi", "library": "MPICH 5""#,
    r#""transport": "mpi", "library": "Open MPI 5""#,
    r#""transport": "mpi", "library": "MPICH 5", "over_tcp": true"#,
];

/// Simulated machines, of which one stands for shared memory and one for a network.
const SIMULATED: [&str; 2] = [
    r#""transport": "sim:a", "pml": "ob1", "stands_for": "shared""#,
    r#""transport": "sim:b", "pml": "ob1", "stands_for": "network""#,
];

/// Rows of what a claim is about at places, whose figures are constant: that of the first series, and that of the others.
fn constant(item: &Item, claim: &Claim, places: &[&str], [first, other]: [f64; 2]) -> Rows {
    let mut sizes: BTreeSet<u64> = item.runs.iter().flat_map(|run| sizes(run)).collect();
    // Of what is over ranks there are as many runs as these.
    if sizes.len() < 3 {
        sizes.extend([2, 4, 8]);
    }
    // Some of many are enough, with the ends of what the claim is about.
    let step = sizes.len().div_ceil(12).max(1);
    let ends = claim.predicate.sizes().concat();
    let last = sizes.last().copied();
    let some = sizes
        .iter()
        .enumerate()
        .filter(|(place, size)| place % step == 0 || ends.contains(size) || Some(**size) == last);
    let sizes: BTreeSet<u64> = some.map(|(_, size)| *size).collect();
    let figure = claim.predicate.figure();
    let mut all = Vec::new();
    let mut add = |fields: String, value: f64| {
        for &size in &sizes {
            let mut row =
                serde_json::from_str::<serde_json::Value>(&format!("{{{fields}}}")).unwrap();
            row["size"] = size.into();
            for figure in [figure, "perceived_bandwidth_paper_mb_s", "bandwidth"] {
                row[figure] = value.into();
            }
            all.push(row);
        }
    };
    let value = |number: usize| if number == 0 { first } else { other };
    for place in places {
        match &claim.predicate {
            Predicate::Parts(parts) => {
                for (number, choice) in parts.choices().iter().enumerate() {
                    let noise = choice.noise.as_deref().unwrap_or("none:4");
                    let (partitions, cold, us) = (choice.partitions, choice.cold, choice.ms * 1000);
                    add(
                        format!(
                            r#"{place}, "policy": "messages", "partitions": {partitions}, "noise": "{noise}", "compute": "sleep:{us}", "cold_cache": {cold}"#
                        ),
                        value(number),
                    );
                }
            }
            Predicate::Units(_) | Predicate::Effects(_) => {
                let units = match &claim.predicate {
                    Predicate::Units(comparison) => comparison.units(),
                    Predicate::Effects(effect) => effect.units(),
                    _ => Vec::new(),
                };
                // Those that name no other item may be compared with the same of one.
                let is_named = units.iter().any(|unit| unit.contains(' '));
                let with = item.with.first().filter(|_| !is_named);
                for (number, unit) in units.into_iter().enumerate() {
                    let unit = unit.replace('*', "default");
                    let (of, unit) = unit.split_once(' ').unwrap_or(("", &unit));
                    let of_item = |of: &str| format!(r#""of_item": "{of}", "#);
                    let items = match (of, with) {
                        ("", Some(with)) => vec![String::new(), of_item(with)],
                        ("", None) => vec![String::new()],
                        (of, _) => vec![of_item(of)],
                    };
                    for of in items {
                        add(format!(r#"{of}{place}, "unit": "{unit}""#), value(number));
                    }
                }
            }
            _ => {
                let is_first = match claim.predicate.first() {
                    Some("peer") | None => place.contains("library"),
                    Some(layer) => place.contains(layer),
                };
                add((*place).to_owned(), value(usize::from(!is_first)));
            }
        }
    }
    of_rows(all)
}

/// Where all figures are the same at all sizes, no claim of an order, a fall, a peak or an effect holds.
#[test]
fn no_claim_of_a_shape_holds_of_constant_figures() {
    let (mut shapes, mut others) = (0, 0);
    for item in all().iter().filter(|item| item.needs == Needs::Real) {
        for claim in &item.claims {
            if !claim.predicate.is_shape() {
                others += 1;
                continue;
            }
            shapes += 1;
            let rows = constant(item, claim, &PLACES, [1.0, 1.0]);
            for judged in claim.predicate.judge(&rows, claim.on) {
                let is_met = judged.verdict == Verdict::Fails;
                assert!(is_met, "{}: {}: {judged:?}", item.name, claim.says);
            }
        }
    }
    assert!(shapes > others, "{shapes} shapes, {others} others");
}

/// Figures without any effect meet a claim: it holds where the paper says that there is none, and for such figures alone; otherwise it is
/// not testable by what meets it.
#[test]
fn what_figures_without_effect_meet_tells_nothing() {
    let holds = |judged: &[Judgement]| judged.iter().any(|one| one.verdict == Verdict::Holds);
    let (mut listed, mut met) = (Vec::new(), BTreeSet::new());
    for item in all().iter().filter(|item| item.needs == Needs::Real) {
        for claim in item.claims.iter().filter(|claim| claim.is_published()) {
            let value = without_effect(claim.predicate.figure());
            let told = format!("{}: {}", item.name, claim.says);
            for places in [&PLACES[..], &SIMULATED] {
                let rows = constant(item, claim, places, [value, value]);
                let judged = claim.judge(&rows);
                if !claim.no_effect {
                    assert!(!holds(&judged), "{told} {judged:?}");
                    if holds(&claim.predicate.judge(&rows, claim.on)) {
                        met.insert(told.clone());
                    }
                }
            }
            if claim.no_effect {
                listed.push(&*claim.says);
                let rows = constant(item, claim, &PLACES, [value, value]);
                assert!(holds(&claim.judge(&rows)), "{told}");
                let fails = |both: [f64; 2]| {
                    let judged = claim.judge(&constant(item, claim, &PLACES, both));
                    judged.iter().all(|one| one.verdict == Verdict::Fails)
                };
                let others = [value + 100.0, value - 100.0, 0.1];
                let mut both = others
                    .into_iter()
                    .flat_map(|one| [[one, value], [one, one]]);
                assert!(both.any(fails), "{told}");
            }
        }
    }
    // Of these it is told that they hold without any effect as well, where they hold.
    assert_eq!(met.len(), 10, "{met:#?}");
    // Nothing is to be taken from them.
    let pages = include_str!("../../data/pages.toml");
    for told in &met {
        let says = told.split_once(": ").map_or("", |(_, says)| says);
        assert!(!pages.contains(&format!("claim = \"{says}\"")), "{told}");
    }
    // One is added where its paper says that there is no effect.
    assert_eq!(listed.len(), 33, "{listed:#?}");
}

#[test]
fn what_is_simulated_has_cases_on_a_machine() {
    let folder = std::env::temp_dir().join(format!("tagwire-arrivals-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for (name, text) in crate::ARRIVALS {
        std::fs::write(folder.join(name), text).unwrap();
    }
    let arrivals = folder.display().to_string();
    for item in all() {
        let runs = match item.simulated(&arrivals, false) {
            Ok(runs) => runs,
            Err(why) => {
                assert!(!why.is_empty(), "{}", item.name);
                continue;
            }
        };
        for simulated in runs.iter().chain(&item.simulated(&arrivals, true).unwrap()) {
            let words = &simulated.run.arguments;
            if words[0] == "sim" {
                // The command's tests run these.
                assert!(words.len() > 1, "{}", item.name);
                continue;
            }
            let of = tagwire_bench::Simulated::parse(words);
            let of = of.unwrap_or_else(|error| panic!("{}: {error}", item.name));
            let cases = of.cases().len()
                + of.exchanges().unwrap().len()
                + of.patterns().unwrap().len()
                + of.pairs().len()
                + of.neighbours().len()
                + of.callers().unwrap().len()
                + of.reductions().unwrap().len();
            assert!(cases > 0, "{}", item.name);
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Whatever is marked as needing the simulator has one, or says why not.
#[test]
fn what_is_not_simulated_says_why() {
    for item in all().iter().filter(|item| !item.has_tables()) {
        let why = item.simulated("", false).err();
        let has_words = why.is_none_or(|why| !why.starts_with("no program"));
        assert!(has_words, "{}", item.name);
    }
}

#[test]
fn what_a_machine_is_fitted_to_is_not_judged_on_it() {
    use serde_json::json;
    let item = find("partitioned/fig4").unwrap()[0];
    let rows = |transport: &str| {
        let row = |size: u64| {
            json!({"transport": transport, "pml": "ob1", "policy": "messages", "partitions": 32,
                "compute": "sleep:10000", "size": size, "overhead_paper": 59.0})
        };
        of_rows(vec![row(512), row(2048)])
    };
    let verdict = |transport| {
        let outcome = crate::Outcome::of(item, &rows(transport), false, Vec::new(), Vec::new());
        let value = serde_json::to_value(&outcome).unwrap();
        let claims = value["claims"].as_array().unwrap();
        let claim = claims
            .iter()
            .find(|claim| claim["says"].as_str().unwrap().starts_with("32 partitions"));
        let verdict = claim.unwrap()["judgements"][0]["verdict"].clone();
        (value.get("column").cloned(), verdict)
    };
    assert_eq!(verdict("shm"), (None, json!("holds")));
    assert_eq!(
        verdict("sim:niagara"),
        (Some(json!("sim")), json!("not-testable"))
    );
}

#[test]
fn what_no_paper_says_is_not_judged_on_its_machine() {
    let simulated = all()
        .iter()
        .filter(|item| item.simulated("", false).is_ok());
    for claim in simulated.flat_map(|item| &item.claims) {
        let is_said = !claim.published.text().starts_with("not published");
        assert!(is_said || claim.no_sim.is_some(), "{}", claim.says);
    }
}

/// Parameters of machines are fitted to one figure of a paper at the most: all others are predictions.
#[test]
fn no_claim_of_a_figure_that_machines_are_fitted_to_is_judged_on_them() {
    for (name, of_machine) in [
        ("partitioned/fig4", 8),
        ("cmb/fig6", 22),
        ("reduction/fig7", 3),
    ] {
        let claims = &find(name).unwrap()[0].claims;
        let can_be_told = claims.iter().filter(|claim| claim.no_sim.is_none());
        let (fitted, judged): (Vec<_>, Vec<_>) = can_be_told.partition(|claim| claim.fitted);
        assert_eq!((fitted.len(), judged.len()), (of_machine, 0), "{name}");
    }
}
