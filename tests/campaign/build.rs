//! Stamps the program with the revision and the profile of its build: records say what they are of.

#[path = "../../cli/build/stamp.rs"]
mod stamp;

/// The root of the workspace, from this package.
const ROOT: &str = "../..";
/// What is under this changes no program.
const PAGES: &str = "docs";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let revision = revision().unwrap_or_else(|| "unknown".to_owned());
    println!("cargo:rustc-env=BUILD_STAMP_REVISION={revision}");
    println!("cargo:rustc-env=BUILD_STAMP_PROFILE={}", stamp::profile());
}

/// Returns the commit, with `-dirty` behind it where a file differs from it or is not known to it; `None` outside of a
/// repository.
fn revision() -> Option<String> {
    let commit = stamp::commit(ROOT)?;
    let known = stamp::git(ROOT, &["ls-tree", "--name-only", "--full-tree", "HEAD"])?;
    let known = known.lines().filter(|name| *name != PAGES);
    known.for_each(|name| stamp::watch(ROOT, name));
    // Without locks: a look must not touch the files that are watched.
    let no_pages = format!(":!{PAGES}");
    let status = [
        "--no-optional-locks",
        "status",
        "--porcelain",
        "--",
        ".",
        &no_pages,
    ];
    let changes = stamp::git(ROOT, &status)?;
    Some(match changes.is_empty() {
        true => commit,
        false => format!("{commit}-dirty"),
    })
}
