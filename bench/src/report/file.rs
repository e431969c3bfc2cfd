//! A results file that is complete whenever it is written.

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
pub struct ResultsFile {
    name: PathBuf,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Replaced {
        target: PathBuf,
        /// What was made beside it and has not taken its place.
        scratch: Option<PathBuf>,
    },
    Stream(File),
}

impl ResultsFile {
    /// Looks whether `path` can be written.
    ///
    /// # Errors
    /// [`Error::Output`] when it cannot.
    pub fn open(path: &Path) -> Result<Self> {
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

    /// Makes `text` the file's content; a pipe or a device waits for the final one.
    ///
    /// # Errors
    /// [`Error::Output`] when it cannot be written; what was there before stays.
    pub fn update(&mut self, text: &str) -> Result<()> {
        let Kind::Replaced { target, scratch } = &mut self.kind else {
            return Ok(());
        };
        let written = write_beside(target, scratch, text);
        written.map_err(|source| output_error(&self.name, source))
    }

    /// Makes `text` the final content.
    ///
    /// # Errors
    /// [`Error::Output`] when it cannot be written; the content of a regular file that was there before stays.
    pub fn finish(&mut self, text: &str) -> Result<()> {
        if let Kind::Stream(file) = &mut self.kind {
            let written = file.write_all(text.as_bytes()).and_then(|()| file.flush());
            return written.map_err(|source| output_error(&self.name, source));
        }
        self.update(text)
    }
}

impl Drop for ResultsFile {
    fn drop(&mut self) {
        if let Kind::Replaced {
            scratch: Some(left),
            ..
        } = &self.kind
        {
            let _ = fs::remove_file(left);
        }
    }
}

/// Proves that files can be made beside `target`.
fn replaced(target: PathBuf) -> io::Result<Kind> {
    let (made, _) = make_beside(&target)?;
    fs::remove_file(&made)?;
    Ok(Kind::Replaced {
        target,
        scratch: None,
    })
}

/// Replaces `target` by a file with `text`. What is made on the way is in `scratch` until it is `target`.
fn write_beside(target: &Path, scratch: &mut Option<PathBuf>, text: &str) -> io::Result<()> {
    if let Some(left) = scratch.take() {
        let _ = fs::remove_file(left);
    }
    let (made, mut file) = make_beside(target)?;
    let made = scratch.insert(made);
    file.write_all(text.as_bytes())?;
    fs::rename(made, target)?;
    *scratch = None;
    Ok(())
}

/// Makes a file beside `target`, hidden, and with a name that nobody can foresee. What has the name already, such as a
/// link that another user of the folder has put there, is not opened: another name is drawn.
fn make_beside(target: &Path) -> io::Result<(PathBuf, File)> {
    let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut tries = 0;
    loop {
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{:016x}.part", draw()));
        let path = target.with_file_name(hidden);
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < TRIES => {
                tries += 1;
            }
            opened => return Ok((path, opened?)),
        }
    }
}

/// How many names are drawn. The first one is free, unless somebody can foresee the draw.
const TRIES: u32 = 16;

/// A number that differs from call to call, and that others cannot foresee: the keys of the standard library's hashing come
/// from the system's random source.
fn draw() -> u64 {
    use std::hash::BuildHasher;
    std::hash::RandomState::new().hash_one(std::process::id())
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

    /// Whoever may write to the folder can put links there, for every name that can be foreseen.
    #[test]
    fn no_link_beside_the_file_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.json");
        let victim = folder.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        let foreseen = folder
            .path()
            .join(format!(".out.json.{}.part", std::process::id()));
        std::os::unix::fs::symlink(&victim, foreseen).unwrap();
        let mut file = ResultsFile::open(&path).unwrap();
        file.update("text").unwrap();
        // The names of two updates have nothing in common, and what is there is never opened.
        let names: Vec<_> = (0..2).map(|_| make_beside(&path).unwrap().0).collect();
        assert_ne!(names[0], names[1]);
        for name in &names {
            fs::remove_file(name).unwrap();
            std::os::unix::fs::symlink(&victim, name).unwrap();
            let again = OpenOptions::new().write(true).create_new(true).open(name);
            assert_eq!(again.unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        }
        file.finish("more text").unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        assert_eq!(fs::read_to_string(&path).unwrap(), "more text");
    }

    #[test]
    fn a_write_that_fails_leaves_nothing_beside_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.json");
        let mut file = ResultsFile::open(&path).unwrap();
        // A folder cannot be replaced by a file.
        fs::create_dir(&path).unwrap();
        assert!(file.update("text").is_err() && file.update("text").is_err());
        drop(file);
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
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
