//! How the two sides of a connection show each other that they know a secret, without saying it.
//!
//! ```text
//!   the side that comes                  the side that listens
//!     hello, nonce c         -->
//!                            <--         challenge, nonce l
//!     HMAC(secret, comes, hello, l) -->
//!                            <--         what is granted, HMAC(secret, listens, hello, l, what is granted)
//! ```
//!
//! The hello holds the nonce of its side, so that each proof is good for one connection, and for one side of it. The side that
//! comes proves first: whoever only connects learns nothing that depends on the secret. What the side that listens says with its proof
//! may be in it. What follows the proofs is neither hidden nor signed.

use std::io::IsTerminal;

use tagwire_base::{JobSecret, Result};

use crate::error::Error;

/// Bytes that nobody has used before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nonce([u8; Self::LEN]);

impl Nonce {
    /// Length in bytes.
    pub const LEN: usize = 32;

    /// Draws one from the system's random source.
    ///
    /// # Errors
    /// When the system has no randomness to give.
    pub fn draw() -> Result<Self> {
        Ok(Self(*JobSecret::generate()?.as_bytes()))
    }

    /// Returns the one that these bytes are.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; Self::LEN]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; Self::LEN] {
        &self.0
    }
}

/// A side of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The one that connects.
    Comes,
    /// The one that listens.
    Listens,
}

impl Side {
    const fn label(self) -> &'static [u8] {
        match self {
            Self::Comes => b"tagwire comes\0",
            Self::Listens => b"tagwire listens\0",
        }
    }
}

/// What shows that a side knows the secret. [`Proof::shows`] checks one that has come; `==` is for tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Proof([u8; Self::LEN]);

impl Proof {
    /// Length in bytes.
    pub const LEN: usize = 32;

    /// Returns the proof of a side. `said` is what both have said: the language, the hello and the challenge, and what the side that listens
    /// says with its proof, where the proof is over that too.
    #[must_use]
    pub fn of(secret: &JobSecret, side: Side, said: &[u8]) -> Self {
        Self(secret.prove(&[side.label(), said]))
    }

    /// Returns whether this is the proof of that side. The time that it takes does not depend on where the two differ.
    #[must_use]
    pub fn shows(&self, secret: &JobSecret, side: Side, said: &[u8]) -> bool {
        secret.is_proved(&self.0, &[side.label(), said])
    }

    /// Returns the one that these bytes are.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; Self::LEN]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; Self::LEN] {
        &self.0
    }
}

/// Returns the secret by which the ranks of a job know each other in a round of sessions at the store that has drawn `nonce`: what was
/// overheard in one is good in no other, nor in another job with the same secret. From it nobody finds the one that the store and other
/// hosts ask for, which a user may have chosen.
pub(crate) fn secret_of_ranks(secret: &JobSecret, round: u32, nonce: &Nonce) -> JobSecret {
    let words: [&[u8]; 3] = [b"tagwire ranks\0", &round.to_le_bytes(), nonce.as_bytes()];
    JobSecret::from_bytes(secret.prove(&words))
}

/// Returns a name for a socket of rank `rank`, which whoever knows the secret knows too. From the name nobody finds the secret.
#[cfg(feature = "launchers")]
pub(crate) fn name_of_socket(secret: &JobSecret, rank: tagwire_base::Rank) -> String {
    let mac = secret.prove(&[b"tagwire sockets\0"]);
    format!("tagwire-{}-{rank}", tagwire_base::hex::encode(&mac[..16]))
}

/// Draws a secret that this command says to its user on standard error. Returns it with its text.
///
/// # Errors
/// [`Error::Usage`] where standard error is no terminal: what keeps it would have the secret too.
pub fn draw_for_terminal() -> crate::Result<(JobSecret, String)> {
    if !std::io::stderr().is_terminal() {
        return Err(Error::Usage(
            "a secret is drawn and said only where standard error is a terminal, since it would stay in whatever else keeps that: --secret @FILE names a file with one, which is made where it is not there"
                .to_owned(),
        ));
    }
    Ok(JobSecret::draw_text()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(text: &str) -> JobSecret {
        JobSecret::of_text(text).unwrap()
    }

    #[test]
    fn a_proof_is_of_one_secret_one_side_and_one_conversation() {
        let (ours, theirs) = (secret("ours"), secret("theirs"));
        let proof = Proof::of(&ours, Side::Comes, b"said");
        assert!(proof.shows(&ours, Side::Comes, b"said"));
        assert!(!proof.shows(&theirs, Side::Comes, b"said"));
        assert!(!proof.shows(&ours, Side::Listens, b"said"));
        assert!(!proof.shows(&ours, Side::Comes, b"saie"));
        for at in 0..Proof::LEN {
            let mut bytes = *proof.as_bytes();
            bytes[at] ^= 1;
            assert!(!Proof::from_bytes(bytes).shows(&ours, Side::Comes, b"said"));
        }
        assert!(Nonce::draw().unwrap() != Nonce::draw().unwrap());
    }

    /// What Python's `hmac.new(b"ours" + bytes(28), b"tagwire comes\0said", "sha256")` returns, and the like.
    #[test]
    fn the_mac_is_hmac_sha_256() {
        let hex = tagwire_base::hex::encode;
        let ours = secret("ours");
        let comes = Proof::of(&ours, Side::Comes, b"said");
        assert_eq!(
            hex(comes.as_bytes()),
            "b770d8c2f07bc4d6971a9dc9f48dc02cf9648e9bc904c32912b0db8924f3b946"
        );
        let listens = Proof::of(&ours, Side::Listens, b"said");
        assert_eq!(
            hex(listens.as_bytes()),
            "4de12b1765b86118f3f8edebeb0e933a318b5a10e47d2a87f984d26ad8cdce85"
        );
        assert_eq!(
            secret_of_ranks(&ours, 7, &Nonce::from_bytes([3; Nonce::LEN])).to_hex(),
            "aea63af19883453d2bcc708c7d84e6087cef822fbad5f89ae1137ed1fcac7080"
        );
    }
}
