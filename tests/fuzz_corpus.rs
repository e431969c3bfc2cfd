//! Replays the corpora of the fuzz targets, with any compiler: `fuzz/` finds, this keeps.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that panics fails"
)]

use std::fs;
use std::path::Path;

#[path = "../fuzz/src/lib.rs"]
mod targets;

/// Runs `target` on every file of its corpus, on every beginning of it, and with every byte changed once.
fn replay(name: &str, target: fn(&[u8]), every: usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz/corpus")
        .join(name);
    let mut files = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        eprintln!("{}", path.display());
        let bytes = fs::read(&path).unwrap();
        target(&bytes);
        for at in (0..bytes.len()).step_by(every) {
            target(&bytes[..at]);
            let mut changed = bytes.clone();
            changed[at] = changed[at].wrapping_add(0x55);
            target(&changed);
        }
        files += 1;
    }
    assert!(files >= 3, "{} holds {files} files", folder.display());
}

#[test]
fn packets_of_ob1() {
    replay("ob1_packets", targets::ob1_packets, 5);
}

#[test]
fn frames_of_the_store() {
    replay("store_frames", targets::store_frames, 1);
}

#[test]
fn lists_of_sizes() {
    replay("sizes", targets::sizes, 1);
}
