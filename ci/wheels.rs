//! Where the libraries lie that come in Python wheels. Tests include this file by its path.
#![allow(dead_code, reason = "each test uses its part")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the path of `file` in the wheel `package`: as `ci/peers` installed it, else as the
/// system's Python has it; `None` where neither has.
pub fn wheel(package: &str, file: &str) -> Option<PathBuf> {
    environment(package)
        .and_then(|root| below(&root.join("lib"), file))
        .or_else(|| of_system(package, file))
}

/// Returns the virtual environment that `ci/peers` made for `package`.
pub fn environment(package: &str) -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent()?;
    let root = target.join("peers").join(package);
    // The mark of an installation that came to its end.
    root.join("installed").exists().then_some(root)
}

/// Returns the first file of that name below a folder. Links to folders are not followed: they
/// lead out of the environment, or in circles.
fn below(folder: &Path, file: &str) -> Option<PathBuf> {
    let mut entries: Vec<_> = fs::read_dir(folder).ok()?.flatten().collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    let found = entries.iter().find(|entry| entry.file_name() == file);
    if let Some(entry) = found {
        return entry.path().canonicalize().ok();
    }
    let folders = entries
        .iter()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders
        .into_iter()
        .find_map(|entry| below(&entry.path(), file))
}

/// Asks the system's Python for a file of a package.
fn of_system(package: &str, file: &str) -> Option<PathBuf> {
    let script = format!(
        "import importlib.metadata as m; print([f.locate() for f in m.files('{package}') if \
         f.name == '{file}'][0].resolve())"
    );
    let output = Command::new("python3")
        .args(["-c", &script])
        .output()
        .ok()?;
    let path = String::from_utf8(output.stdout).ok()?;
    let path = path.trim();
    (!path.is_empty()).then(|| path.into())
}
