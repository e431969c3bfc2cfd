//! What the members of a job know and nobody else, and where people keep it.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};

use hmac_sha256::HMAC;

use crate::error::{Error, Result};
use crate::hex;

/// Who beside its owner may do anything with a file, as `st_mode` says it.
const OTHERS: u32 = 0o077;
/// More bytes than a file with a secret has; what is behind them is not read.
const LONGEST_FILE: u64 = 1024;

/// What every member of a job knows and nobody else: peers prove it in their first message.
///
/// Secrets are compared in a time that does not depend on where they differ, and `Debug` does not show them.
#[derive(Clone)]
pub struct JobSecret([u8; 32]);

impl JobSecret {
    /// Length in bytes.
    pub const LEN: usize = 32;

    /// A fresh secret from the system's random source.
    ///
    /// # Errors
    /// When the system has no randomness to give.
    pub fn generate() -> Result<Self> {
        let mut bytes = [0; Self::LEN];
        getrandom::fill(&mut bytes).map_err(|error| {
            Error::Bootstrap(format!("no randomness for the job secret: {error}"))
        })?;
        Ok(Self(bytes))
    }

    /// Returns a fresh secret that people pass on, and its text: 32 hexadecimal digits, which are 128 bits.
    ///
    /// # Errors
    /// As [`JobSecret::generate`].
    pub fn draw_text() -> Result<(Self, String)> {
        let mut text = Self::generate()?.to_hex();
        text.truncate(Self::LEN);
        let secret = Self::of_text(&text).map_err(Error::Bootstrap)?;
        Ok((secret, text))
    }

    /// The secret that these bytes are.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; Self::LEN]) -> Self {
        Self(bytes)
    }

    /// The bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; Self::LEN] {
        &self.0
    }

    /// Compares in time that does not depend on where the first difference lies.
    #[must_use]
    pub fn matches(&self, other: &[u8]) -> bool {
        if other.len() != Self::LEN {
            return false;
        }
        let pairs = self.0.iter().zip(other);
        let difference = pairs.fold(0, |difference, (a, b)| difference | (a ^ b));
        // Without this a compiler may leave the loop at the first difference.
        std::hint::black_box(difference) == 0
    }

    /// Returns what shows that whoever says these words, one behind the other, knows the secret: their HMAC-SHA-256 (RFC 2104). From it
    /// nobody finds the secret.
    #[must_use]
    pub fn prove(&self, words: &[&[u8]]) -> [u8; Self::LEN] {
        let mut mac = HMAC::new(self.0);
        for word in words {
            mac.update(word);
        }
        mac.finalize()
    }

    /// Returns whether `proof` is that of these words.
    #[must_use]
    pub fn is_proved(&self, proof: &[u8], words: &[&[u8]]) -> bool {
        Self(self.prove(words)).matches(proof)
    }

    /// Returns the secret that a text of 1 to [`LEN`](Self::LEN) bytes is.
    ///
    /// # Errors
    /// For others, what is wrong with them.
    pub fn of_text(text: &str) -> std::result::Result<Self, String> {
        let mut bytes = [0; Self::LEN];
        match bytes.get_mut(..text.len()) {
            Some(room) if !room.is_empty() => room.copy_from_slice(text.as_bytes()),
            _ => {
                return Err(format!(
                    "has {} bytes; it takes 1 to {}",
                    text.len(),
                    Self::LEN
                ));
            }
        }
        Ok(Self(bytes))
    }

    /// Returns the secret that an option names by `@FILE`, which has its text. White space at the end does not count.
    ///
    /// # Errors
    /// For a text in place of a file: every user of a host reads the arguments of its processes. For a regular file that others than its
    /// owner may read or change, or that cannot be read. As [`JobSecret::of_text`].
    pub fn of_option(option: &str) -> std::result::Result<Self, String> {
        let file = file_of(option)?;
        read(file).map_err(|error| of_file(file, &error))?
    }

    /// As [`JobSecret::of_option`]; a file that is not there is made, for its owner alone, with a secret that is drawn.
    ///
    /// # Errors
    /// As [`JobSecret::of_option`]; when the file cannot be made.
    pub fn of_option_or_drawn(option: &str) -> std::result::Result<Self, String> {
        let file = file_of(option)?;
        match read(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let (secret, text) = Self::draw_text().map_err(|error| error.to_string())?;
                make(file, &text).map_err(|error| of_file(file, &error))?;
                Ok(secret)
            }
            read => read.map_err(|error| of_file(file, &error))?,
        }
    }

    /// As lower-case hexadecimal, for an environment variable.
    #[must_use]
    pub fn to_hex(&self) -> String {
        hex::encode(&self.0)
    }

    /// Reads what [`JobSecret::to_hex`] wrote.
    #[must_use]
    pub fn from_hex(text: &str) -> Option<Self> {
        hex::decode(text)?.try_into().ok().map(Self)
    }
}

impl PartialEq for JobSecret {
    fn eq(&self, other: &Self) -> bool {
        self.matches(&other.0)
    }
}

impl Eq for JobSecret {}

impl fmt::Debug for JobSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JobSecret(..)")
    }
}

/// Returns the file that an option names.
fn file_of(option: &str) -> std::result::Result<&str, String> {
    option.strip_prefix('@').ok_or_else(|| {
        "takes @FILE, and no text: every user of this host reads the arguments of its processes"
            .to_owned()
    })
}

fn of_file(file: &str, error: &io::Error) -> String {
    format!("@{file}: {error}")
}

/// Reads a file. The outer error is the system's, the inner one says what is wrong with what is there.
fn read(file: &str) -> io::Result<std::result::Result<JobSecret, String>> {
    let opened = File::open(file)?;
    let metadata = opened.metadata()?;
    // A pipe is its reader's alone.
    if metadata.is_file() && metadata.mode() & OTHERS != 0 {
        let mode = metadata.mode() & 0o7777;
        return Ok(Err(format!(
            "@{file}: others than its owner may read or change it (mode {mode:o}): 'chmod 600 {file}', and another secret if they have"
        )));
    }
    let (owner, own) = (metadata.uid(), rustix::process::geteuid());
    if metadata.is_file() && owner != own.as_raw() && owner != 0 {
        return Ok(Err(format!(
            "@{file}: it is of the user {owner}, who knows what is in it"
        )));
    }
    let mut text = String::new();
    opened.take(LONGEST_FILE).read_to_string(&mut text)?;
    Ok(JobSecret::of_text(text.trim_end()))
}

/// Makes a file that is not there, for its owner alone.
fn make(file: &str, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut made = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(file)?;
    made.write_all(format!("{text}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn secrets_are_equal_where_all_bytes_are() {
        let secret = JobSecret::generate().unwrap();
        assert!(secret.matches(secret.as_bytes()) && secret == secret.clone());
        for at in 0..JobSecret::LEN {
            let mut bytes = *secret.as_bytes();
            bytes[at] ^= 0x80;
            assert!(!secret.matches(&bytes) && secret != JobSecret::from_bytes(bytes));
        }
        assert!(!secret.matches(&secret.as_bytes()[1..]) && !secret.matches(&[]));
        assert!(!format!("{secret:?}").contains(&secret.to_hex()[..4]));
    }

    /// What Python's `hmac.new(b"ours" + bytes(28), b"ab", "sha256")` returns.
    #[test]
    fn a_proof_is_of_one_secret_and_of_its_words() {
        let ours = JobSecret::of_text("ours").unwrap();
        let proof = ours.prove(&[b"a", b"", b"b"]);
        assert_eq!(
            hex::encode(&proof),
            "1b74c8d3adb026cdde247f42239f953c62bcc303e2132b9decda269adc7802d9"
        );
        assert!(ours.is_proved(&proof, &[b"ab"]));
        assert!(!ours.is_proved(&proof, &[b"ac"]) && !ours.is_proved(&proof[1..], &[b"ab"]));
        let theirs = JobSecret::of_text("theirs").unwrap();
        assert!(!theirs.is_proved(&proof, &[b"ab"]));
    }

    #[test]
    fn a_text_is_no_file_and_is_not_repeated() {
        for option in ["hunter2", "", "file"] {
            let why = JobSecret::of_option(option).unwrap_err();
            assert!(why.contains("@FILE"), "{why}");
            assert!(option.is_empty() || !why.contains("hunter"), "{why}");
            assert_eq!(JobSecret::of_option_or_drawn(option).unwrap_err(), why);
        }
    }

    #[test]
    fn a_file_of_a_secret_is_its_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key");
        let option = format!("@{}", file.display());
        let why = JobSecret::of_option(&option).unwrap_err();
        assert!(why.starts_with(&option), "{why}");
        fs::write(&file, "ours \n").unwrap();
        for mode in [0o644, 0o640, 0o620, 0o602] {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            let why = JobSecret::of_option(&option).unwrap_err();
            assert!(
                why.contains("chmod 600") && why.contains(&format!("{mode:o}")),
                "{why}"
            );
            assert!(!why.contains("ours"), "{why}");
            // It is there, and not made anew.
            assert!(JobSecret::of_option_or_drawn(&option).is_err());
        }
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let ours = JobSecret::of_text("ours").unwrap();
        assert_eq!(JobSecret::of_option(&option), Ok(ours.clone()));
        assert_eq!(JobSecret::of_option_or_drawn(&option), Ok(ours.clone()));
        if rustix::process::geteuid().is_root() {
            // Root reads all files: also one of a user who knows what he has written.
            std::os::unix::fs::chown(&file, Some(65_534), None).unwrap();
            let why = JobSecret::of_option(&option).unwrap_err();
            assert!(why.contains("65534") && !why.contains("ours"), "{why}");
            std::os::unix::fs::chown(&file, Some(0), None).unwrap();
            assert_eq!(JobSecret::of_option(&option), Ok(ours));
        }
        fs::write(&file, "x".repeat(33)).unwrap();
        assert!(
            JobSecret::of_option(&option)
                .unwrap_err()
                .contains("33 bytes")
        );
    }

    #[test]
    fn a_file_that_is_not_there_is_made_with_a_secret_that_is_drawn() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key");
        let option = format!("@{}", file.display());
        let drawn = JobSecret::of_option_or_drawn(&option).unwrap();
        assert_eq!(file.metadata().unwrap().mode() & 0o7777, 0o600);
        assert_eq!(JobSecret::of_option(&option), Ok(drawn.clone()));
        assert_eq!(JobSecret::of_option_or_drawn(&option), Ok(drawn.clone()));
        // What another user has laid there is not written through.
        let (link, victim) = (folder.path().join("link"), folder.path().join("victim"));
        symlink(&victim, &link).unwrap();
        let option = format!("@{}", link.display());
        assert!(JobSecret::of_option_or_drawn(&option).is_err());
        assert!(!victim.exists());
        let (other, text) = JobSecret::draw_text().unwrap();
        assert!(other != drawn && text.len() == 32);
        assert_eq!(JobSecret::of_text(&text), Ok(other));
    }
}
