//! How two sides get to know each other: each proves that it knows the secret, and neither says it.

use serde::{Deserialize, Serialize};
use tagwire_base::JobSecret;
use tagwire_launch::proof::{Nonce, Proof, Side};

use super::messages::{FIRST_LINE, Hearer, PROTOCOL, PeerMessage, Silence, Speaker};

/// The side that connects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hello {
    /// [`PROTOCOL`].
    // Builds from before know it by this name, and are told that their version is another.
    #[serde(rename = "language")]
    pub protocol: String,
    /// Tagwire's version: plans of others may mean something else.
    pub version: String,
    /// What makes this connection another one than all before.
    pub nonce: [u8; Nonce::LEN],
}

impl Hello {
    fn new(version: &str) -> tagwire_base::Result<Self> {
        Ok(Self {
            protocol: PROTOCOL.to_owned(),
            version: version.to_owned(),
            nonce: *Nonce::draw()?.as_bytes(),
        })
    }

    /// Returns what both sides have said, once the challenge has been.
    fn said(&self, challenge: &Nonce) -> Vec<u8> {
        let words = format!("{}\0{}\0", self.protocol, self.version);
        [words.as_bytes(), &self.nonce, challenge.as_bytes()].concat()
    }
}

/// What the side that listens knows of itself.
#[derive(Debug)]
pub(super) struct Own {
    pub secret: JobSecret,
    /// Tagwire's version.
    pub version: String,
}

/// A pending peer, as far as it has said who it is. It has no socket: what came in goes in, and what is to be done comes out.
#[derive(Debug, Default)]
pub(super) struct Greeting {
    line: Vec<u8>,
    challenged: Option<(Hello, Nonce)>,
}

/// What is to be done with a pending peer.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
    /// It has more to say.
    Wait,
    /// It has said who it is, and is told this.
    Challenge(PeerMessage),
    /// It knows the secret, and is told this.
    Welcome(PeerMessage),
    /// It does not belong here, because of this, and is told so where it understands.
    Refuse {
        why: String,
        told: Option<PeerMessage>,
    },
}

impl Greeting {
    /// Takes bytes of a pending peer.
    pub(super) fn hear(&mut self, bytes: &[u8], own: &Own) -> Step {
        self.line.extend_from_slice(bytes);
        let line = match self.line.iter().position(|byte| *byte == b'\n') {
            None if (self.line.len() as u64) < FIRST_LINE => return Step::Wait,
            // Nobody says a second word before the first has been answered.
            Some(at) if at + 1 == self.line.len() => std::mem::take(&mut self.line),
            _ => return foreign(),
        };
        match (serde_json::from_slice(&line), self.challenged.take()) {
            (Ok(PeerMessage::Hello(hello)), None) => self.challenge(hello, own),
            (Ok(PeerMessage::Proof { proof }), Some((hello, challenge))) => {
                let said = hello.said(&challenge);
                if !Proof::from_bytes(proof).shows(&own.secret, Side::Comes, &said) {
                    return refused("its secret is another one (option --secret)".to_owned());
                }
                let proof = Proof::of(&own.secret, Side::Listens, &said);
                let proof = *proof.as_bytes();
                Step::Welcome(PeerMessage::Proof { proof })
            }
            _ => foreign(),
        }
    }

    fn challenge(&mut self, hello: Hello, own: &Own) -> Step {
        if hello.protocol != PROTOCOL || hello.version != own.version {
            return refused(format!(
                "it is Tagwire {}, and this side is {}: both sides need the same version",
                hello.version, own.version
            ));
        }
        let challenge = match Nonce::draw() {
            Ok(challenge) => challenge,
            Err(error) => return refused(error.to_string()),
        };
        self.challenged = Some((hello, challenge));
        let nonce = *challenge.as_bytes();
        Step::Challenge(PeerMessage::Challenge { nonce })
    }
}

fn foreign() -> Step {
    Step::Refuse {
        why: "it is no 'tagwire bench'".to_owned(),
        told: None,
    }
}

fn refused(why: String) -> Step {
    let told = Some(PeerMessage::Refused { why: why.clone() });
    Step::Refuse { why, told }
}

/// Why the side that connects is not known to the other.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unknown {
    /// The other says why it does not take part with this one.
    Refused(String),
    /// The other does not know the secret.
    Impostor,
    /// It does not say what it should.
    Silent(Silence),
    /// This machine has no random bytes.
    Unprepared(String),
}

/// Says who this side is, and proves it; sees whether the side that listens knows the secret.
pub(super) fn introduce(speaker: &Speaker, hearer: &mut Hearer, own: &Own) -> Result<(), Unknown> {
    let hello = Hello::new(&own.version).map_err(|error| Unknown::Unprepared(error.to_string()))?;
    // A side that is gone is noticed by what is heard.
    let _ = speaker.say(&PeerMessage::Hello(hello.clone()));
    let challenge = match heard(hearer)? {
        PeerMessage::Challenge { nonce } => Nonce::from_bytes(nonce),
        _ => return Err(Unknown::Silent(Silence::Foreign)),
    };
    let said = hello.said(&challenge);
    let proof = *Proof::of(&own.secret, Side::Comes, &said).as_bytes();
    let _ = speaker.say(&PeerMessage::Proof { proof });
    match heard(hearer)? {
        PeerMessage::Proof { proof }
            if Proof::from_bytes(proof).shows(&own.secret, Side::Listens, &said) =>
        {
            hearer.trust();
            Ok(())
        }
        PeerMessage::Proof { .. } => Err(Unknown::Impostor),
        _ => Err(Unknown::Silent(Silence::Foreign)),
    }
}

fn heard(hearer: &mut Hearer) -> Result<PeerMessage, Unknown> {
    match hearer.hear() {
        Ok(PeerMessage::Refused { why }) => Err(Unknown::Refused(why)),
        Ok(word) => Ok(word),
        Err(silence) => Err(Unknown::Silent(silence)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(secret: &str) -> Own {
        Own {
            secret: JobSecret::of_text(secret).unwrap(),
            version: "1.2.3".to_owned(),
        }
    }

    fn line(word: &PeerMessage) -> Vec<u8> {
        let mut line = serde_json::to_vec(word).unwrap();
        line.push(b'\n');
        line
    }

    fn challenge(step: Step) -> Nonce {
        match step {
            Step::Challenge(PeerMessage::Challenge { nonce }) => Nonce::from_bytes(nonce),
            other => panic!("no challenge: {other:?}"),
        }
    }

    fn why(step: Step) -> String {
        match step {
            Step::Refuse { why, .. } => why,
            other => panic!("not refused: {other:?}"),
        }
    }

    #[test]
    fn whoever_proves_the_secret_is_welcome_however_its_words_arrive() {
        let own = own("ours");
        for piece in [1, 7, 4096] {
            let mut greeting = Greeting::default();
            let hello = Hello::new("1.2.3").unwrap();
            let mut step = Step::Wait;
            for bytes in line(&PeerMessage::Hello(hello.clone())).chunks(piece) {
                assert_eq!(step, Step::Wait);
                step = greeting.hear(bytes, &own);
            }
            let said = hello.said(&challenge(step));
            let proof = *Proof::of(&own.secret, Side::Comes, &said).as_bytes();
            let expected = *Proof::of(&own.secret, Side::Listens, &said).as_bytes();
            let welcome = Step::Welcome(PeerMessage::Proof { proof: expected });
            assert_eq!(
                greeting.hear(&line(&PeerMessage::Proof { proof }), &own),
                welcome
            );
        }
    }

    #[test]
    fn who_does_not_belong_here_is_refused() {
        let own = own("ours");
        let hear = |words: &[PeerMessage]| {
            let mut greeting = Greeting::default();
            let steps = words.iter().map(|word| greeting.hear(&line(word), &own));
            steps.last().unwrap()
        };
        let hello = Hello::new("1.2.3").unwrap();
        let proof = [0; Proof::LEN];
        let wrong = [
            PeerMessage::Hello(hello.clone()),
            PeerMessage::Proof { proof },
        ];
        assert!(why(hear(&wrong)).contains("secret is another one"));
        let version = Hello::new("9.9.9").unwrap();
        assert!(why(hear(&[PeerMessage::Hello(version)])).contains("same version"));
        let protocol = Hello {
            protocol: "other/1".to_owned(),
            ..hello.clone()
        };
        assert!(why(hear(&[PeerMessage::Hello(protocol)])).contains("same version"));
        for words in [
            &[PeerMessage::Proof { proof }][..],
            &[
                PeerMessage::Hello(hello.clone()),
                PeerMessage::Hello(hello.clone()),
            ],
            &[PeerMessage::Bye],
        ] {
            assert!(why(hear(words)).contains("no 'tagwire bench'"));
        }
        for bytes in [
            &b"GET / HTTP/1.1\r\n"[..],
            &[b'x'; FIRST_LINE as usize],
            &[line(&PeerMessage::Hello(hello)), b"more".to_vec()].concat(),
        ] {
            let mut greeting = Greeting::default();
            assert!(why(greeting.hear(bytes, &own)).contains("no 'tagwire bench'"));
        }
        let almost = vec![b'x'; FIRST_LINE as usize - 1];
        assert_eq!(Greeting::default().hear(&almost, &own), Step::Wait);
    }

    proptest::proptest! {
        /// Whatever pending peers say, in whatever pieces, nobody is let in by it.
        #[test]
        fn arbitrary_words_let_nobody_in(
            hello: bool,
            pieces in proptest::collection::vec(proptest::collection::vec(proptest::prelude::any::<u8>(), 0..80), 0..8),
        ) {
            let own = own("ours");
            let mut greeting = Greeting::default();
            if hello {
                let word = PeerMessage::Hello(Hello::new("1.2.3").unwrap());
                challenge(greeting.hear(&line(&word), &own));
            }
            for bytes in pieces {
                match greeting.hear(&bytes, &own) {
                    Step::Wait => {}
                    Step::Refuse { .. } => return Ok(()),
                    other => panic!("let in: {other:?}"),
                }
            }
        }
    }

    /// A proof that was overheard is none on another connection.
    #[test]
    fn a_proof_is_of_one_connection() {
        let own = own("ours");
        let hello = Hello::new("1.2.3").unwrap();
        let [mut first, mut second] = [Greeting::default(), Greeting::default()];
        let said = line(&PeerMessage::Hello(hello.clone()));
        let overheard = challenge(first.hear(&said, &own));
        assert_ne!(challenge(second.hear(&said, &own)), overheard);
        let proof = Proof::of(&own.secret, Side::Comes, &hello.said(&overheard));
        let proof = line(&PeerMessage::Proof {
            proof: *proof.as_bytes(),
        });
        assert!(why(second.hear(&proof, &own)).contains("secret is another one"));
        assert!(matches!(first.hear(&proof, &own), Step::Welcome(_)));
    }
}
