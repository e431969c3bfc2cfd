//! Files on their way to a folder of results. Several processes may write to one folder, and each of these files has the number of its
//! own in its name. A process that is killed leaves them.

use std::fs;
use std::path::Path;

use super::unwritable;
use crate::failure::Failure;

/// How the names of these files end, behind the number of their process.
const PARTIAL: &str = "partial";

/// Writes a file as a whole or not at all.
pub fn write(file: &Path, text: &str) -> Result<(), Failure> {
    let partial = file.with_extension(format!("{}.{PARTIAL}", std::process::id()));
    let written = fs::write(&partial, text).and_then(|()| fs::rename(&partial, file));
    written.map_err(|error| {
        // It may not be there.
        let _ = fs::remove_file(&partial);
        unwritable(file, &error)
    })
}

/// Removes from a folder what processes that are gone have left in it.
pub fn clean(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries {
        if entry.file_name().to_str().is_some_and(is_left) {
            // Another process may clean too.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Whether a file's name has the number of a process that is gone.
fn is_left(name: &str) -> bool {
    let rest = name
        .strip_suffix(PARTIAL)
        .and_then(|rest| rest.strip_suffix('.'));
    let process = rest.and_then(|rest| rest.rsplit_once('.')?.1.parse::<u32>().ok());
    process.is_some_and(|process| !Path::new("/proc").join(process.to_string()).exists())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn what_gone_processes_have_left_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let mut ended = Command::new("true").spawn().unwrap();
        ended.wait().unwrap();
        let (own, gone) = (std::process::id(), ended.id());
        let kept = [
            format!("a-1.{own}.partial"),
            "a-1.json".to_owned(),
            "a-1.partial.json".to_owned(),
            "a.partial".to_owned(),
        ];
        let left = [
            format!("a-1.{gone}.partial"),
            format!("a-1.sim.{gone}.partial"),
        ];
        for name in kept.iter().chain(&left) {
            fs::write(folder.path().join(name), "").unwrap();
        }
        clean(folder.path());
        let mut kept = kept.to_vec();
        kept.sort();
        assert_eq!(names(folder.path()), kept);
    }

    #[test]
    fn what_cannot_be_written_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        write(&folder.join("whole.json"), "text").unwrap();
        fs::create_dir(folder.join("taken")).unwrap();
        assert!(write(&folder.join("taken"), "text").is_err());
        assert_eq!(names(folder), ["taken", "whole.json"]);
    }
}
