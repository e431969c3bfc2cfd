//! Stamps the program with the revision and the profile of its build: records say what they are of.

use std::env;
use std::path::Path;
use std::process::Command;

/// The root of the workspace, from this package.
const ROOT: &str = "../..";
/// What is under this changes no program.
const PAGES: &str = "docs";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let revision = revision().unwrap_or_else(|| "unknown".to_owned());
    println!("cargo:rustc-env=BUILD_STAMP_REVISION={revision}");
    println!("cargo:rustc-env=BUILD_STAMP_PROFILE={}", profile());
}

/// Returns the commit, with `-dirty` behind it where a file differs from it or is not known to it; `None` outside of a
/// repository.
fn revision() -> Option<String> {
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let branch = git(&["rev-parse", "--symbolic-full-name", "HEAD"]).unwrap_or_default();
    // HEAD changes with a checkout; its log, or the branch where there is no log, with a commit.
    for file in ["HEAD", "logs/HEAD", &branch] {
        watch(&git(&["rev-parse", "--git-path", file])?);
    }
    let known = git(&["ls-tree", "--name-only", "--full-tree", "HEAD"])?;
    known.lines().filter(|name| *name != PAGES).for_each(watch);
    // Without locks: a look must not touch the files that are watched.
    let changes = git(&[
        "--no-optional-locks",
        "status",
        "--porcelain",
        "--",
        ".",
        &format!(":!{PAGES}"),
    ])?;
    Some(match changes.is_empty() {
        true => commit,
        false => format!("{commit}-dirty"),
    })
}

/// Has cargo run this again once a path has changed.
fn watch(path: &str) {
    let path = Path::new(ROOT).join(path);
    if path.exists() {
        println!("cargo:rerun-if-changed={}", path.display());
    }
}

/// Returns the profile, by the folder of the build: Cargo's `PROFILE` is `release` for all that inherit from it.
fn profile() -> String {
    let out = env::var("OUT_DIR").unwrap_or_default();
    let mut folders = Path::new(&out).iter().rev();
    let build = folders.nth(2).filter(|name| *name == "build");
    let named = build.and_then(|_| folders.next());
    let named = named.map(|name| name.to_string_lossy().into_owned());
    named.unwrap_or_else(|| env::var("PROFILE").unwrap_or_default())
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .arg("-C")
        .arg(ROOT)
        .args(arguments)
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
