//! Stamps the build: what `tagwire info` says of version, commit, target and features.

use std::env;
use std::path::Path;
use std::process::Command;

#[path = "build/stamp.rs"]
mod stamp;

/// The root of the workspace, from this package.
const ROOT: &str = "..";

fn main() {
    let sources = sources();
    for source in &sources {
        println!("cargo:rerun-if-changed={ROOT}/{source}");
    }
    let commit = commit(&sources);
    stamp("COMMIT", &commit.unwrap_or_else(|| "unknown".to_owned()));
    stamp("TARGET", &variable("TARGET"));
    stamp("PROFILE", &stamp::profile());
    stamp("FEATURES", &features());
    stamp(
        "COMPILER",
        &compiler().unwrap_or_else(|| "unknown".to_owned()),
    );
}

/// Cargo also puts these into the environment of what it runs, so they must not look like
/// settings.
fn stamp(name: &str, value: &str) {
    println!("cargo:rustc-env=BUILD_STAMP_{name}={value}");
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| "unknown".to_owned())
}

/// Where the product's code lies, from the root of the workspace: a change there makes the build another one than its
/// commit. Whatever holds a package counts.
fn sources() -> Vec<String> {
    let entries = Path::new(ROOT).read_dir().into_iter().flatten().flatten();
    let is_package = |path: &Path| path.join("Cargo.toml").is_file();
    let packages = entries.filter(|entry| is_package(&entry.path()));
    let mut sources: Vec<String> = packages
        .filter_map(|package| package.file_name().into_string().ok())
        .collect();
    let root = ["Cargo.toml", "Cargo.lock", "src"];
    let there = |name: &&str| Path::new(ROOT).join(name).exists();
    sources.extend(root.into_iter().filter(there).map(str::to_owned));
    sources.sort_unstable();
    sources
}

/// The commit, with `-modified` behind it when the `sources` differ from it; `None` outside a
/// repository of our own, such as in a package from a registry.
fn commit(sources: &[String]) -> Option<String> {
    let package = env::var("CARGO_MANIFEST_DIR").ok()?;
    let top = stamp::git(ROOT, &["rev-parse", "--show-toplevel"])?;
    // A package that was unpacked inside someone else's repository is not at that commit.
    if Path::new(&top).join("cli").canonicalize().ok()?
        != Path::new(&package).canonicalize().ok()?
    {
        return None;
    }
    let commit = stamp::commit(ROOT)?;
    // Without locks: a look must not touch the files that are watched.
    let mut status = vec![
        "--no-optional-locks",
        "status",
        "--porcelain",
        "--untracked-files=no",
        "--",
    ];
    status.extend(sources.iter().map(String::as_str));
    let modified = stamp::git(ROOT, &status).is_none_or(|changes| !changes.is_empty());
    Some(if modified {
        format!("{commit}-modified")
    } else {
        commit
    })
}

fn compiler() -> Option<String> {
    let output = Command::new(env::var_os("RUSTC")?)
        .arg("--version")
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().to_owned())
}

fn features() -> String {
    let mut names: Vec<String> = env::vars()
        .filter_map(|(name, _)| name.strip_prefix("CARGO_FEATURE_").map(str::to_lowercase))
        .filter(|name| name != "default")
        .map(|name| name.replace('_', "-"))
        .collect();
    names.sort_unstable();
    names.join(",")
}
