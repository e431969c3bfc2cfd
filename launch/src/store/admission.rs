//! Who may come in: pending peers say who they are, get a challenge, and prove that they know the job's secret.

use std::collections::HashMap;

use tagwire_base::JobSecret;

use super::key_space::ClientId;
use super::wire::{Grant, Hello, Reply, Request, VERSION, Who};
use crate::proof::{Nonce, Proof};

/// How far a pending peer has come.
#[derive(Debug)]
pub(super) enum Step {
    /// It is to prove what it knows.
    Challenge(Nonce),
    /// It has.
    Admit(Admitted),
}

/// Who has proved what it knows.
#[derive(Debug)]
pub(super) struct Admitted {
    hello: Hello,
    challenge: Nonce,
}

impl Admitted {
    /// Returns who it is.
    pub const fn who(&self) -> &Who {
        &self.hello.who
    }
}

/// The pending peers of a store.
#[derive(Debug)]
pub(super) struct Admission {
    secret: JobSecret,
    /// Those that have been challenged.
    challenged: HashMap<ClientId, (Hello, Nonce)>,
}

impl Admission {
    pub fn new(secret: JobSecret) -> Self {
        Self {
            secret,
            challenged: HashMap::new(),
        }
    }

    /// Takes what a pending peer says.
    ///
    /// # Errors
    /// Why it may not come in.
    pub fn hear(&mut self, client: ClientId, request: Request) -> Result<Step, String> {
        match (request, self.challenged.remove(&client)) {
            (Request::Hello(hello), None) => self.challenge(client, hello),
            (Request::Proof(proof), Some((hello, nonce))) => self.check(&proof, hello, nonce),
            (_, None) => Err("the first message must be a hello".to_owned()),
            (_, Some(_)) => Err("the second message must be a proof".to_owned()),
        }
    }

    /// Forgets a pending peer that is gone.
    pub fn forget(&mut self, client: ClientId) {
        self.challenged.remove(&client);
    }

    /// Returns whether a pending peer has said who it is.
    pub fn is_challenged(&self, client: ClientId) -> bool {
        self.challenged.contains_key(&client)
    }

    fn challenge(&mut self, client: ClientId, hello: Hello) -> Result<Step, String> {
        let version = hello.version;
        if version != VERSION {
            return Err(format!(
                "the job's store has version {VERSION} of what ranks say to each other, and who comes has version {version}: all hosts need the same Tagwire"
            ));
        }
        let nonce = Nonce::draw().map_err(|error| error.to_string())?;
        self.challenged.insert(client, (hello, nonce));
        Ok(Step::Challenge(nonce))
    }

    fn check(&self, proof: &Proof, hello: Hello, challenge: Nonce) -> Result<Step, String> {
        if !hello.is_proved(proof, &self.secret, &challenge) {
            return Err("wrong job secret".to_owned());
        }
        Ok(Step::Admit(Admitted { hello, challenge }))
    }

    /// Returns what the store says to somebody that it lets in: what it grants, and its own proof.
    pub fn grant(&self, admitted: &Admitted, grant: Grant) -> Reply {
        let Admitted { hello, challenge } = admitted;
        let proof = hello.answer(&self.secret, challenge, &grant);
        Reply::Granted(grant, proof)
    }
}
