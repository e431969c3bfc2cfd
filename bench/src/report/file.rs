//! A results file that is complete after every row.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// Keeps a file's content up to date.
///
/// A regular file is replaced as a whole, by renaming a complete one over it; until the first
/// content comes, one that was there before is left alone. Anything else (a pipe, a device) is
/// written once, at the end.
#[derive(Debug)]
pub(crate) struct ResultsFile {
    name: PathBuf,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Replaced { target: PathBuf, scratch: PathBuf },
    Stream(File),
}

impl ResultsFile {
    /// Looks whether `path` can be written.
    ///
    /// # Errors
    /// [`Error::Output`] when it cannot.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let kind = match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => Err(io::Error::from(io::ErrorKind::IsADirectory)),
            Ok(metadata) if !metadata.is_file() => {
                OpenOptions::new().write(true).open(path).map(Kind::Stream)
            }
            // Through a symbolic link, the file that it names is replaced, not the link. One that
            // may not be written is not replaced behind its owner's back.
            Ok(_) => OpenOptions::new()
                .append(true)
                .open(path)
                .and_then(|_| fs::canonicalize(path))
                .and_then(replaced),
            Err(_) => replaced(path.to_path_buf()),
        };
        let kind = kind.map_err(|source| output_error(path, source))?;
        Ok(Self {
            name: path.to_path_buf(),
            kind,
        })
    }

    /// Makes `text` the file's content.
    pub(crate) fn update(&mut self, text: &str) -> Result<()> {
        let Kind::Replaced { target, scratch } = &self.kind else {
            return Ok(());
        };
        let written = File::create(scratch)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .and_then(|()| fs::rename(scratch, target));
        written.map_err(|source| output_error(&self.name, source))
    }

    /// Makes `text` the final content.
    pub(crate) fn finish(&mut self, text: &str) -> Result<()> {
        if let Kind::Stream(file) = &mut self.kind {
            let written = file.write_all(text.as_bytes()).and_then(|()| file.flush());
            return written.map_err(|source| output_error(&self.name, source));
        }
        self.update(text)
    }
}

impl Drop for ResultsFile {
    fn drop(&mut self) {
        if let Kind::Replaced { scratch, .. } = &self.kind {
            // Gone already when the last update went well.
            let _ = fs::remove_file(scratch);
        }
    }
}

/// Proves that files can be made beside `target`.
fn replaced(target: PathBuf) -> io::Result<Kind> {
    let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}.part", std::process::id()));
    let scratch = target.with_file_name(hidden);
    File::create(&scratch)?;
    Ok(Kind::Replaced { target, scratch })
}

fn output_error(path: &Path, source: io::Error) -> Error {
    Error::Output {
        what: path.display().to_string(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_old_content_stays_until_there_is_new() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.json");
        fs::write(&path, "old").unwrap();
        let mut file = ResultsFile::open(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        file.update("new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        file.finish("newer").unwrap();
        drop(file);
        assert_eq!(fs::read_to_string(&path).unwrap(), "newer");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        fs::write(&target, "").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        ResultsFile::open(&link).unwrap().finish("text").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&target).unwrap(), "text");
    }

    #[test]
    fn a_full_device_is_an_error_and_stays_a_device() {
        let mut file = ResultsFile::open(Path::new("/dev/full")).unwrap();
        file.update("ignored").unwrap();
        let error = file.finish("text").unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("cannot write /dev/full: No space left"),
            "{error}"
        );
        assert_eq!(error.exit_status().code(), 2);
        assert!(!fs::metadata("/dev/full").unwrap().is_file());
    }

    #[test]
    fn what_cannot_be_written_is_known_at_once() {
        for path in ["/nowhere/at/all.json", "/dev", "/proc/version"] {
            let error = ResultsFile::open(Path::new(path)).unwrap_err();
            assert!(error.to_string().contains(path), "{error}");
        }
    }
}
