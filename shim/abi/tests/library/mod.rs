//! Where the shared library is.
//!
//! Cargo does not build a `cdylib` for the tests of its package, but `cargo build` and `ci/tests` do. What is missing or older
//! than its sources is built here.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::{env, fs};

/// Returns the library of this build, up to date.
pub fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let program = env::current_exe().unwrap();
        let folder = program.parent().and_then(Path::parent).unwrap();
        let library = folder.join(concat!("lib", env!("CARGO_PKG_NAME"), ".so"));
        if !is_fresh(&library) {
            build(folder);
        }
        library
    })
}

/// Whether nothing of what it was made from is newer. Cargo lists that in a file beside it.
fn is_fresh(library: &Path) -> bool {
    let time = |path: &Path| fs::metadata(path).and_then(|data| data.modified());
    let Ok(made) = time(library) else {
        return false;
    };
    let Ok(list) = fs::read_to_string(library.with_extension("d")) else {
        return false;
    };
    let (_, sources) = list.split_once(": ").unwrap();
    let mut sources = sources.split_whitespace().map(Path::new);
    sources.all(|source| time(source).is_ok_and(|changed| changed <= made))
}

fn build(folder: &Path) {
    let profile = match folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(profile) => profile,
    };
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args([
        "build",
        "--package",
        env!("CARGO_PKG_NAME"),
        "--lib",
        "--profile",
        profile,
    ]);
    command.arg("--target-dir").arg(folder.parent().unwrap());
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    said(&mut command);
}

/// Runs a command and returns what it says.
///
/// # Panics
///
/// When it fails.
pub fn said(command: &mut Command) -> String {
    let out = command.output().unwrap();
    let (said, wrong) = (
        String::from_utf8_lossy(&out.stdout),
        String::from_utf8_lossy(&out.stderr),
    );
    assert!(
        out.status.success(),
        "{command:?}: {}: {said}{wrong}",
        out.status
    );
    said.into_owned()
}
