//! The layers of the design: no crate reaches upward, and `unsafe` is where it may be.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Every crate, with the crates below it that it may use. A new crate gets its place here.
const LAYERS: &[(&str, &[&str])] = &[
    ("tagwire-derive", &[]),
    ("tagwire-base", &[]),
    ("tagwire-lanes", &[]),
    ("tagwire-matching", &["tagwire-base", "tagwire-lanes"]),
    ("tagwire-foreign", &["tagwire-base", "tagwire-matching"]),
    ("tagwire-layout", &[]),
    ("tagwire-layout-bench", &["tagwire-layout"]),
    ("tagwire-transport", &["tagwire-base", "tagwire-matching"]),
    ("tagwire-libfabric-sys", &[]),
    (
        "tagwire-ofi",
        &["tagwire-base", "tagwire-transport", "tagwire-libfabric-sys"],
    ),
    ("tagwire-sim", &["tagwire-base", "tagwire-transport"]),
    (
        "tagwire-dr",
        &["tagwire-base", "tagwire-transport", "tagwire-sim"],
    ),
    ("tagwire-ucx-sys", &[]),
    (
        "tagwire-ucx",
        &["tagwire-base", "tagwire-transport", "tagwire-ucx-sys"],
    ),
    (
        "tagwire-rails",
        &[
            "tagwire-base",
            "tagwire-transport",
            "tagwire-dr",
            "tagwire-ofi",
            "tagwire-ucx",
        ],
    ),
    ("tagwire-launch", &["tagwire-base"]),
    (
        "tagwire-pml",
        &[
            "tagwire-base",
            "tagwire-transport",
            "tagwire-dr",
            "tagwire-rails",
            "tagwire-ofi",
            "tagwire-ucx",
            "tagwire-matching",
            "tagwire-foreign",
        ],
    ),
    (
        "tagwire-lab",
        &[
            "tagwire-base",
            "tagwire-matching",
            "tagwire-transport",
            "tagwire-pml",
        ],
    ),
    (
        "tagwire-coll",
        &[
            "tagwire-base",
            "tagwire-layout",
            "tagwire-transport",
            "tagwire-pml",
        ],
    ),
    (
        "tagwire-files",
        &[
            "tagwire-base",
            "tagwire-layout",
            "tagwire-transport",
            "tagwire-pml",
            "tagwire-coll",
        ],
    ),
    (
        "tagwire-shim",
        &[
            "tagwire-files",
            "tagwire-base",
            "tagwire-layout",
            "tagwire-transport",
            "tagwire-launch",
            "tagwire-pml",
            "tagwire-coll",
        ],
    ),
    ("tagwire-mpi-api", &[]),
    ("mpi_abi", &["tagwire-mpi-api", "tagwire-shim"]),
    ("mpifort_abi", &["tagwire-mpi-api"]),
    (
        SUITES,
        &[
            "tagwire-base",
            "tagwire-transport",
            "tagwire-sim",
            "tagwire-pml",
        ],
    ),
    (
        "tagwire-bench-sim",
        &[
            "tagwire-base",
            "tagwire-layout",
            "tagwire-transport",
            "tagwire-sim",
            "tagwire-pml",
            "tagwire-coll",
        ],
    ),
    (
        "tagwire-bench",
        &[
            "tagwire-base",
            "tagwire-transport",
            "tagwire-rails",
            "tagwire-matching",
            "tagwire-pml",
            "tagwire-layout",
            "tagwire-coll",
            "tagwire-launch",
        ],
    ),
    ("tagwire-bench-loops", &["tagwire-bench", "tagwire-base"]),
    ("tagwire-report", &["tagwire-bench"]),
    ("tagwire-papers", &["tagwire-bench"]),
    (
        "tagwire",
        &[
            "tagwire-derive",
            "tagwire-base",
            "tagwire-transport",
            "tagwire-dr",
            "tagwire-rails",
            "tagwire-ofi",
            "tagwire-pml",
            "tagwire-layout",
            "tagwire-coll",
            "tagwire-launch",
            "tagwire-bench",
            "tagwire-sim",
        ],
    ),
    (
        "tagwire-cli",
        &[
            "tagwire",
            "tagwire-base",
            "tagwire-transport",
            "tagwire-rails",
            "tagwire-matching",
            "tagwire-foreign",
            "tagwire-lab",
            "tagwire-pml",
            "tagwire-layout",
            "tagwire-mpi-api",
            "tagwire-coll",
            "tagwire-launch",
            "tagwire-bench",
            "tagwire-bench-loops",
            "tagwire-bench-sim",
            "tagwire-papers",
            "tagwire-report",
            "tagwire-sim",
        ],
    ),
    (
        CAMPAIGN,
        &[
            "tagwire",
            "tagwire-base",
            "tagwire-coll",
            "tagwire-dr",
            "tagwire-launch",
            "tagwire-pml",
            "tagwire-rails",
            "tagwire-transport",
        ],
    ),
];

/// The program that tries to break jobs: nobody is above it, and the suites lend it their chance and networks.
const CAMPAIGN: &str = "tagwire-campaign";

/// The crate of suites and of the in-process network. It stands above the crates that are tested with it, which have it as
/// a dev-dependency; nobody else may.
const SUITES: &str = "tagwire-conformance";

/// Who is tested with it.
const TESTED: &[&str] = &[
    "tagwire-transport",
    "tagwire-ofi",
    "tagwire-ucx",
    "tagwire-rails",
    "tagwire-sim",
    "tagwire-dr",
    "tagwire-pml",
    "tagwire-lab",
    "tagwire",
    "tagwire-coll",
    "tagwire-files",
    "tagwire-shim",
];

/// The modules of the product in which `unsafe` is allowed: shared memory, system calls, C ABI,
/// lent buffers, locks.
const UNSAFE: &[&str] = &[
    "base/src/prefetch.rs",
    "base/src/thread.rs",
    "base/src/ticks.rs",
    "bench/loops/examples/exchange.rs",
    "bench/loops/examples/room.rs",
    "bench/sim/src/lent.rs",
    "bench/src/buffer.rs",
    "bench/src/mpi/abi.rs",
    "bench/src/mpi/collective.rs",
    "bench/src/mpi/group.rs",
    "bench/src/mpi/handles.rs",
    "bench/src/mpi/partitioned.rs",
    "bench/src/mpi/remote.rs",
    "bench/src/mpi/window.rs",
    "bench/src/port/pml.rs",
    "coll/src/nonblocking.rs",
    "coll/src/persistent.rs",
    "files/src/pointer.rs",
    "files/src/two_phase/common.rs",
    "files/src/unix.rs",
    "fuzz/src/lib.rs",
    "layout/src/copy.rs",
    "layout/src/kernel.rs",
    "layout/src/memory.rs",
    "layout/src/rows.rs",
    "layout/src/x87.rs",
    "launch/src/job/child.rs",
    "launch/src/launchers/pmi.rs",
    "launch/src/pmix/events.rs",
    "launch/src/pmix/library.rs",
    "launch/src/pmix/raw.rs",
    "launch/src/store/socket.rs",
    "matching/foreign/src/library.rs",
    "matching/lanes/src/avx2.rs",
    "matching/lanes/src/avx512.rs",
    "matching/lanes/src/kernels.rs",
    "matching/lanes/src/neon.rs",
    "matching/lanes/src/sse2.rs",
    "pml/src/channels/flags.rs",
    "pml/src/guard.rs",
    "pml/src/lend.rs",
    "pml/src/partitioned/held.rs",
    "pml/src/record/chunk.rs",
    "pml/src/rma/owner.rs",
    "shim/abi/src/lib.rs",
    "shim/fortran/src/lib.rs",
    "shim/src/call/collectives/buffers.rs",
    "shim/src/call/collectives/fast.rs",
    "shim/src/call/collectives/run.rs",
    "shim/src/functions.rs",
    "shim/src/object/datatype.rs",
    "shim/src/object/file/memory.rs",
    "shim/src/object/window/atomics.rs",
    "shim/src/object/window/shortcuts.rs",
    "shim/src/raw.rs",
    "shim/src/raw/arrays.rs",
    "shim/src/raw/data.rs",
    "shim/src/raw/results.rs",
    "shim/src/raw/words.rs",
    "shim/src/streams.rs",
    "src/buffer.rs",
    "src/collective/blocks.rs",
    "src/collective/buffers.rs",
    "src/collective/persistent.rs",
    "src/collective/value.rs",
    "src/context.rs",
    "src/owned.rs",
    "src/partitioned.rs",
    "src/persistent.rs",
    "src/plain.rs",
    "src/scope.rs",
    "transport/src/allocation.rs",
    "transport/src/board/memory.rs",
    "transport/src/board/shared.rs",
    "transport/src/data.rs",
    "transport/src/message.rs",
    "transport/src/null/memory.rs",
    "transport/dr/src/crc.rs",
    "transport/ofi/libfabric-sys/src/calls.rs",
    "transport/ofi/libfabric-sys/src/lib.rs",
    "transport/ofi/libfabric-sys/src/library.rs",
    "transport/ofi/src/fabric/context.rs",
    "transport/ofi/src/fabric/info.rs",
    "transport/ofi/src/fabric/memory.rs",
    "transport/ofi/src/fabric/net.rs",
    "transport/ofi/src/fabric/order.rs",
    "transport/ofi/src/fabric/post.rs",
    "transport/ofi/src/fabric/tagged.rs",
    "transport/ofi/src/interface.rs",
    "transport/ofi/src/open.rs",
    "transport/ofi/src/registrations/changes.rs",
    "transport/src/shared_writes.rs",
    "transport/src/shared_writes/stream.rs",
    "transport/src/shm/arena.rs",
    "transport/src/shm/channel/control.rs",
    "transport/src/shm/cma.rs",
    "transport/src/shm/layout.rs",
    "transport/src/shm/segment.rs",
    "transport/src/shm/matching/memory.rs",
    "transport/sim/src/matching/state.rs",
    "transport/sim/src/memory.rs",
    "transport/sim/src/transfer.rs",
    "transport/ucx/src/byte/rank.rs",
    "transport/ucx/src/byte/remote.rs",
    "transport/ucx/src/byte/write.rs",
    "transport/ucx/src/core.rs",
    "transport/ucx/src/matching/rank.rs",
    "transport/ucx/src/matching/unexpected.rs",
    "transport/ucx/src/operations.rs",
    "transport/ucx/src/piece.rs",
    "transport/ucx/src/shared.rs",
    "transport/ucx/src/upcalls.rs",
    "transport/ucx/src/worker.rs",
    "transport/ucx/ucx-sys/src/lib.rs",
];

/// Those in which it makes buffers of regions again, or has bytes moved by them: that a region still names lent memory is
/// what their code knows, function by function.
const UNSAFE_REGIONS: &[&str] = &[
    "coll/src/transfer.rs",
    "pml/src/channels/service.rs",
    "pml/src/cm/recv.rs",
    "pml/src/cm/send.rs",
    "pml/src/ob1/link.rs",
    "pml/src/ob1/mod.rs",
    "pml/src/ob1/request.rs",
    "pml/src/ob1/send.rs",
    "pml/src/partitioned/awaited.rs",
    "pml/src/partitioned/handshake.rs",
    "pml/src/partitioned/measure.rs",
    "pml/src/partitioned/orphan.rs",
    "pml/src/partitioned/matched.rs",
    "pml/src/partitioned/sending.rs",
    "transport/ofi/src/byte/mod.rs",
    "transport/ofi/src/byte/remote.rs",
    "transport/ofi/src/engine/peers.rs",
    "transport/ofi/src/engine/sending.rs",
    "transport/ofi/src/kind.rs",
    "transport/ofi/src/matching/receive.rs",
    "transport/ofi/src/matching/send.rs",
    "transport/rails/src/striped/reads.rs",
    "transport/src/shm/channel/mod.rs",
    "transport/src/shm/channel/recv.rs",
    "transport/src/shm/channel/send.rs",
    "transport/src/shm/matching/list.rs",
    "transport/src/shm/matching/receiver.rs",
    "transport/src/shm/matching/receives.rs",
    "transport/src/shm/matching/sends.rs",
    "transport/src/shm/partner.rs",
    "transport/src/shm/remote.rs",
    "transport/src/shm/transfer.rs",
    "transport/src/shm/transfer/pieces.rs",
    "transport/ucx/src/library.rs",
];

/// Tests, benches, test programs and what only tests compile, in which it is.
const UNSAFE_TESTS: &[&str] = &[
    "bench/sim/tests/memory.rs",
    "coll/tests/board.rs",
    "coll/tests/common/cases.rs",
    "coll/tests/inter.rs",
    "coll/tests/nonblocking.rs",
    "launch/tests/job.rs",
    "layout/bench/benches/kernels.rs",
    "layout/tests/raw.rs",
    "pml/examples/instructions.rs",
    "pml/examples/ready.rs",
    "conformance/src/pml/buffers.rs",
    "conformance/src/pml/rig.rs",
    "pml/src/ob1/tests.rs",
    "pml/src/rma/tests.rs",
    "pml/src/schedules/room.rs",
    "pml/src/partitioned/models.rs",
    "pml/tests/at_once.rs",
    "pml/tests/contact.rs",
    "pml/tests/exposures.rs",
    "pml/tests/fabrics/mod.rs",
    "pml/tests/partitioned.rs",
    "pml/tests/partitioned_wait.rs",
    "pml/tests/quiet.rs",
    "cli/tests/programs/confine.rs",
    "cli/tests/programs/rank/shortage.rs",
    "conformance/src/allocations.rs",
    "conformance/src/memory.rs",
    "tests/campaign/src/hostile/memory.rs",
    "shim/tests/intercollectives.rs",
    "shim/tests/intercommunicators.rs",
    "shim/tests/collectives.rs",
    "shim/tests/reductions.rs",
    "shim/tests/requests.rs",
    "shim/tests/sessions.rs",
    "shim/tests/common/mod.rs",
    "transport/src/board/models.rs",
    "transport/src/shm/channel/models.rs",
    "transport/src/shm/models.rs",
    "transport/src/shm/matching/tests.rs",
    "transport/src/shm/tests.rs",
    "transport/ofi/src/byte/tests.rs",
    "transport/ofi/src/engine/tests.rs",
    "transport/ofi/src/fabric/faulty.rs",
    "transport/ofi/src/matching/tests.rs",
    "transport/ofi/src/registrations/tests.rs",
    "transport/rails/tests/common/mod.rs",
    "transport/ofi/libfabric-sys/tests/library.rs",
    "transport/src/null/tests.rs",
    "conformance/tests/broken_matching.rs",
    "transport/ucx/tests/suite/writes.rs",
    "shim/fortran/tests/descriptor.rs",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The words in quotes in `text`.
fn quoted(text: &str) -> Vec<String> {
    text.split('"')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

/// A manifest's sections, each with its lines, without comments and empty ones.
fn sections(manifest: &Path) -> BTreeMap<String, Vec<String>> {
    let text = fs::read_to_string(manifest).unwrap();
    let mut sections: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut current = String::new();
    for line in text.lines().map(str::trim) {
        if let Some(name) = line
            .strip_prefix('[')
            .and_then(|line| line.strip_suffix(']'))
        {
            current = name.trim_matches(['[', ']']).to_owned();
            sections.entry(current.clone()).or_default();
        } else if !line.is_empty() && !line.starts_with('#') {
            sections
                .entry(current.clone())
                .or_default()
                .push(line.to_owned());
        }
    }
    sections
}

/// The manifests of all crates of the workspace.
fn manifests() -> Vec<PathBuf> {
    let root = root().join("Cargo.toml");
    let text = fs::read_to_string(&root).unwrap();
    let (_, members) = text.split_once("members = [").unwrap();
    let (members, _) = members.split_once(']').unwrap();
    let member = |folder: String| root.with_file_name(folder).join("Cargo.toml");
    let mut manifests: Vec<_> = quoted(members).into_iter().map(member).collect();
    manifests.push(root.clone());
    manifests
}

fn name(manifest: &Path) -> String {
    let sections = sections(manifest);
    let line = sections["package"]
        .iter()
        .find(|line| line.starts_with("name ="));
    quoted(line.unwrap()).remove(0)
}

/// The crates of ours that a manifest depends on: for tests and builds too, in any notation.
fn dependencies(manifest: &Path) -> BTreeSet<String> {
    dependencies_in(manifest, |_| true)
}

/// Those that its product depends on, which is all that a user of the crate compiles.
fn dependencies_of_the_product(manifest: &Path) -> BTreeSet<String> {
    dependencies_in(manifest, |section| !section.contains("dev-dependencies"))
}

/// Those in the sections that `wanted` names.
fn dependencies_in(manifest: &Path, wanted: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let ours: Vec<&str> = LAYERS.iter().map(|(name, _)| *name).collect();
    let mut found = BTreeSet::new();
    for (section, lines) in sections(manifest) {
        if section.starts_with("workspace") || !wanted(&section) {
            continue;
        }
        let Some((_, after)) = section.rsplit_once("dependencies") else {
            continue;
        };
        // `[dependencies.NAME]`, or a line for each.
        let mut words: Vec<&str> = after.strip_prefix('.').into_iter().collect();
        for line in &lines {
            words.push(line.split(['=', '.', ' ']).next().unwrap());
            // A dependency under another name.
            words.extend(line.split('"').skip(1).step_by(2));
        }
        found.extend(
            words
                .into_iter()
                .filter(|word| ours.contains(word))
                .map(str::to_owned),
        );
    }
    found
}

/// `cargo bench -p CRATE -- --quick`: the library's own harness would refuse the options of criterion.
#[test]
fn libraries_with_criterion_leave_the_options_to_it() {
    let is_criterion = |line: &String| line.starts_with("criterion");
    let mut found = 0;
    for manifest in manifests() {
        let sections = sections(&manifest);
        let dependencies = sections.get("dev-dependencies");
        if dependencies.is_none_or(|lines| !lines.iter().any(is_criterion)) {
            continue;
        }
        found += 1;
        let is_off = |lines: &Vec<String>| lines.contains(&"bench = false".to_owned());
        let (library, programs) = (sections.get("lib"), sections.get("bin"));
        assert!(library.is_some_and(is_off), "{}: lib", manifest.display());
        assert!(programs.is_none_or(is_off), "{}: bin", manifest.display());
    }
    assert!(found > 0, "no crate uses criterion");
}

#[test]
fn every_crate_has_a_place_and_uses_only_what_is_below() {
    let mut seen = BTreeSet::new();
    for manifest in manifests() {
        let name = name(&manifest);
        let place = LAYERS.iter().find(|(layer, _)| *layer == name);
        let (_, below) = place.unwrap_or_else(|| panic!("{name} has no place in the layers"));
        for used in dependencies(&manifest) {
            let is_tested = used == SUITES && (TESTED.contains(&name.as_str()) || name == CAMPAIGN);
            // The tests of a crate may turn its own features on.
            let allowed = is_tested || used == name || below.contains(&used.as_str());
            assert!(allowed, "{name} must not use {used}");
        }
        let product = dependencies_of_the_product(&manifest);
        let is_product = !product.contains(SUITES) || name == CAMPAIGN;
        assert!(is_product, "{name} is no test");
        assert!(
            !product.contains(name.as_str()),
            "{name} is no part of itself"
        );
        seen.insert(name);
    }
    let known: BTreeSet<_> = LAYERS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(seen, known, "crates and layers differ");
}

/// The list itself has no circle: whoever is used stands before.
#[test]
fn the_layers_point_downward() {
    for (place, (name, below)) in LAYERS.iter().enumerate() {
        for used in *below {
            let above = LAYERS[..place].iter().any(|(layer, _)| layer == used);
            assert!(above, "{name} uses {used}, which is not below it");
        }
    }
}

#[test]
fn the_manifests_are_read_right() {
    let of = |folder: &str| dependencies(&root().join(folder).join("Cargo.toml"));
    assert_eq!(of("base"), BTreeSet::new());
    assert!(of("pml").contains("tagwire-matching") && of("pml").contains("tagwire-transport"));
    let product = dependencies_of_the_product(&root().join("pml/Cargo.toml"));
    assert!(product.contains("tagwire-transport") && !product.contains(SUITES));
    assert!(of("pml").contains(SUITES));
    assert_eq!(name(&root().join("Cargo.toml")), "tagwire");
}

#[test]
fn every_crate_has_the_lints_of_the_workspace() {
    for manifest in manifests() {
        let sections = sections(&manifest);
        let inherits = |lines: &Vec<String>| lines.iter().any(|line| line == "workspace = true");
        assert!(
            sections.get("lints").is_some_and(inherits),
            "{} lacks [lints] workspace = true",
            manifest.display()
        );
    }
    let root = sections(&root().join("Cargo.toml"));
    for (section, lint) in [
        ("workspace.lints.rust", "unsafe_code = \"deny\""),
        ("workspace.lints.rust", "unsafe_op_in_unsafe_fn = \"deny\""),
        (
            "workspace.lints.clippy",
            "undocumented_unsafe_blocks = \"deny\"",
        ),
    ] {
        assert!(
            root[section].iter().any(|line| line == lint),
            "{lint} is not there"
        );
    }
}

/// The Rust files below a folder, without those of builds.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if name != "target" && !name.starts_with('.') {
                sources(&path, found);
            }
        } else if name.ends_with(".rs") {
            found.push(path);
        }
    }
}

/// Whether an attribute of a file lets `unsafe` in.
fn allows_unsafe(text: &str) -> bool {
    const LINT: &str = "unsafe_code";
    ["allow(", "expect("].iter().any(|word| {
        let lists = text.split(word).skip(1);
        lists
            .filter_map(|rest| rest.split(')').next())
            .any(|list| list.contains(LINT))
    })
}

#[test]
fn every_notation_of_the_permission_is_seen() {
    let lint = "unsafe_code";
    for (text, allowed) in [
        (format!("#![allow({lint})]"), true),
        (
            format!("#![allow(\n    {lint},\n    reason = \"x\"\n)]"),
            true,
        ),
        (format!("#[expect(missing_docs, {lint})]"), true),
        (format!("#![cfg_attr(test, allow({lint}))]"), true),
        (format!("#![forbid({lint})]"), false),
        ("#[allow(missing_docs)]".to_owned(), false),
    ] {
        assert_eq!(allows_unsafe(&text), allowed, "{text}");
    }
}

#[test]
fn unsafe_is_allowed_in_the_listed_modules_only() {
    let mut files = Vec::new();
    sources(root(), &mut files);
    assert!(
        files.len() > 100,
        "only {} files were looked at",
        files.len()
    );
    let mut found = BTreeSet::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        if allows_unsafe(&text) {
            found.insert(
                file.strip_prefix(root())
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_owned(),
            );
        }
    }
    let listed: BTreeSet<_> = UNSAFE
        .iter()
        .chain(UNSAFE_REGIONS)
        .chain(UNSAFE_TESTS)
        .map(|path| (*path).to_owned())
        .collect();
    let extra: Vec<_> = found.difference(&listed).collect();
    assert!(
        extra.is_empty(),
        "unsafe is allowed in files that are not listed: {extra:?}"
    );
    let stale: Vec<_> = listed.difference(&found).collect();
    assert!(stale.is_empty(), "listed, but without unsafe: {stale:?}");
}

/// The matching layer has neither `unsafe` nor anything to wait with.
#[test]
fn matching_is_free_of_the_outside() {
    let mut files = Vec::new();
    sources(&root().join("matching/src"), &mut files);
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        // Up to the tests at the end of a file.
        let code = text.split("#[cfg(test)]").next().unwrap();
        for word in ["std::time", "std::thread", "std::net", "std::fs"] {
            assert!(!code.contains(word), "{} uses {word}", file.display());
        }
    }
}
