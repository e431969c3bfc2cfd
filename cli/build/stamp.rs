//! What build scripts ask of the repository, and of the folder that they build in.

use std::env;
use std::path::Path;
use std::process::Command;

/// Returns the commit, and has cargo run the script again once there is another; `None` outside of a repository.
pub fn commit(root: &str) -> Option<String> {
    let commit = git(root, &["rev-parse", "--short=12", "HEAD"])?;
    let branch = git(root, &["rev-parse", "--symbolic-full-name", "HEAD"]).unwrap_or_default();
    // HEAD changes with a checkout; its log, or the branch where there is no log, with a commit.
    for file in ["HEAD", "logs/HEAD", &branch] {
        watch(root, &git(root, &["rev-parse", "--git-path", file])?);
    }
    Some(commit)
}

/// Has cargo run the script again once a path from `root` has changed.
pub fn watch(root: &str, path: &str) {
    let path = Path::new(root).join(path);
    if path.exists() {
        println!("cargo:rerun-if-changed={}", path.display());
    }
}

/// Returns the profile. Cargo's `PROFILE` is `release` for all that inherit from it; the folder of the build has its own name,
/// `TARGET/PROFILE/build/PACKAGE/out`.
pub fn profile() -> String {
    let out = env::var("OUT_DIR").unwrap_or_default();
    let mut folders = Path::new(&out).iter().rev();
    let build = folders.nth(2).filter(|name| *name == "build");
    let named = build.and_then(|_| folders.next());
    let named = named.map(|name| name.to_string_lossy().into_owned());
    named.unwrap_or_else(|| env::var("PROFILE").unwrap_or_else(|_| "unknown".to_owned()))
}

/// Returns what git says in `root`; `None` where it fails.
pub fn git(root: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .arg("-C")
        .arg(root)
        .args(arguments)
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
