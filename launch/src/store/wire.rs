//! The store's wire format: length-prefixed frames over a local stream socket, little-endian.
//!
//! ```text
//!  0        4      5      6      8          12
//!  +--------+------+------+------+----------+----------------------+
//!  | length | kind | zero | zero | id       | body ...             |
//!  +--------+------+------+------+----------+----------------------+
//!    u32      u8     u8     u16    u32        length - 8 bytes
//! ```
//!
//! `length` counts what follows it. A reply carries the `id` of its request; an event's is 0.
//!
//! | kind | direction | name           | body                                               |
//! |------|-----------|----------------|----------------------------------------------------|
//! | 1    | request   | hello          | magic u32, version u16, zero u16, rank u32, nonce (32) |
//! | 2    | request   | put            | key length u16, key, value                         |
//! | 3    | request   | get            | rank u32, key                                      |
//! | 4    | request   | fence          |                                                    |
//! | 5    | request   | put descriptor | and one descriptor beside the frame (`SCM_RIGHTS`) |
//! | 6    | request   | get descriptor | rank u32                                           |
//! | 7    | request   | leave          |                                                    |
//! | 8    | request   | abort          | status u32                                         |
//! | 9    | request   | host           | magic u32, version u16, zero u16, ranks u32, nonce (32), name |
//! | 10   | request   | ended          | rank u32, status u32; no reply                     |
//! | 11   | request   | proof          | proof (32) of who comes                            |
//! | 65   | reply     | welcome        | size u32, round u32, nonce (32) and proof (32) of the store |
//! | 66   | reply     | done           |                                                    |
//! | 67   | reply     | value          | the bytes                                          |
//! | 68   | reply     | descriptor     | and one descriptor beside the frame                |
//! | 69   | reply     | refused        | why, as UTF-8 text                                 |
//! | 70   | reply     | place          | first rank u32, size u32, proof (32) of the store  |
//! | 71   | reply     | later          | why, as UTF-8 text: the rank is to come again      |
//! | 72   | reply     | challenge      | nonce (32)                                         |
//! | 97   | event     | left           | rank u32                                           |
//! | 98   | event     | failed         | rank u32                                           |
//! | 99   | event     | end            | status u32: the job ends, as a host is told        |
//!
//! A connection begins with a hello, from a rank, or with a host, from what starts the ranks of another host. The store replies
//! with a challenge, and gets a proof that whoever comes knows the job's secret; with its welcome, or place, it proves as much
//! (`launch/src/proof.rs`). Proofs are over the language, `tagwire.store`, the kind and body of the first message, and the challenge; the
//! store's is also over the kind and body of the frame that it is in, as far as it precedes the proof.
//! Both sides decode with the same functions, which accept any bytes and never panic.

use tagwire_base::{JobSecret, Rank};

use crate::proof::{Nonce, Proof, Side};

/// The longest key, in bytes.
pub const MAX_KEY: usize = 256;
/// The longest value, in bytes.
pub const MAX_VALUE: usize = 64 * 1024;
/// The version of what the processes of a job say to each other, which a hello carries: the store's requests, and the formats
/// of layers and transports (`docs/wire.md`). It rises with each change of any of them.
pub const VERSION: u16 = 7;

/// What follows the length field and precedes the body.
const HEADER: usize = 8;
/// The largest `length` field: a put of the longest key and value.
pub(super) const MAX_LENGTH: usize = HEADER + 2 + MAX_KEY + MAX_VALUE;
/// The largest `length` field of whoever has not proved anything yet: a host's hello with the longest name. A hello's body before
/// the name are magic, version, zero, number and nonce.
pub(super) const MAX_FIRST: usize = HEADER + 12 + Nonce::LEN + MAX_KEY;
/// The longest text of a refusal that is sent, in bytes.
const MAX_REFUSAL: usize = 1024;
/// The kinds of a connection's first message.
const HELLO: u8 = 1;
const HOST: u8 = 9;
/// The kinds of what lets somebody in.
const WELCOME: u8 = 65;
const PLACE: u8 = 70;
/// What proofs here are over before all else: one of another conversation is none here.
const PROTOCOL: &[u8] = b"tagwire.store\0";
/// The first bytes of a hello's body: "TGWS".
const MAGIC: u32 = u32::from_le_bytes(*b"TGWS");

/// A frame or a body that breaks the format, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("malformed message: {0}")]
pub struct Malformed(pub &'static str);

/// Ties a reply to its request; 0 is kept for events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestId(pub u32);

/// The first message of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// The version that whoever comes speaks.
    pub version: u16,
    /// What makes this connection another one than all before.
    pub nonce: Nonce,
    /// Who comes.
    pub who: Who,
}

/// Who comes to the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Who {
    /// A rank, not yet checked against the job's size.
    Rank(u32),
    /// What starts ranks on another host.
    Host {
        /// How many ranks it brings.
        ranks: u32,
        /// The host's name, for people; at most [`MAX_KEY`] bytes.
        name: String,
    },
}

impl Hello {
    /// Returns the hello of this version for a new connection.
    ///
    /// # Errors
    /// When the system has no randomness to give.
    pub fn of(who: Who) -> tagwire_base::Result<Self> {
        Ok(Self {
            version: VERSION,
            nonce: Nonce::draw()?,
            who,
        })
    }

    /// Returns what whoever says this hello proves its knowledge of the secret with, once it has been challenged.
    #[must_use]
    pub fn proof(&self, secret: &JobSecret, challenge: &Nonce) -> Proof {
        Proof::of(secret, Side::Comes, &self.said(challenge))
    }

    /// Returns whether this is that proof.
    #[must_use]
    pub fn is_proved(&self, proof: &Proof, secret: &JobSecret, challenge: &Nonce) -> bool {
        proof.shows(secret, Side::Comes, &self.said(challenge))
    }

    /// Returns what a store that is said this hello proves its knowledge of the secret with, and that it grants this and nothing else.
    #[must_use]
    pub fn answer(&self, secret: &JobSecret, challenge: &Nonce, grant: &Grant) -> Proof {
        Proof::of(secret, Side::Listens, &self.granted(challenge, grant))
    }

    /// Returns whether this is that proof.
    #[must_use]
    pub fn is_answered(
        &self,
        proof: &Proof,
        secret: &JobSecret,
        (challenge, grant): (&Nonce, &Grant),
    ) -> bool {
        proof.shows(secret, Side::Listens, &self.granted(challenge, grant))
    }

    /// Returns what both sides have said.
    fn said(&self, challenge: &Nonce) -> Vec<u8> {
        let (kind, body) = self.body();
        let parts: [&[u8]; 4] = [PROTOCOL, &[kind], &body, challenge.as_bytes()];
        parts.concat()
    }

    /// The same with what the store says behind it. The body of a grant has one length for each kind of hello.
    fn granted(&self, challenge: &Nonce, grant: &Grant) -> Vec<u8> {
        let (kind, body) = grant.body();
        [self.said(challenge), vec![kind], body].concat()
    }

    /// Returns the kind and the body of its frame.
    fn body(&self) -> (u8, Vec<u8>) {
        let (kind, number, name) = match &self.who {
            Who::Rank(rank) => (HELLO, *rank, ""),
            Who::Host { ranks, name } => (HOST, *ranks, name.as_str()),
        };
        let parts: [&[u8]; 6] = [
            &MAGIC.to_le_bytes(),
            &self.version.to_le_bytes(),
            &[0; 2],
            &number.to_le_bytes(),
            self.nonce.as_bytes(),
            name.as_bytes(),
        ];
        (kind, parts.concat())
    }

    fn decode(kind: u8, body: &mut Body<'_>) -> Result<Self, Malformed> {
        if body.u32()? != MAGIC {
            return Err(Malformed("a hello without the magic number"));
        }
        let version = body.u16()?;
        if body.u16()? != 0 {
            return Err(Malformed("reserved bytes in use"));
        }
        let number = body.u32()?;
        let nonce = Nonce::from_bytes(body.array()?);
        let who = match kind {
            HELLO => Who::Rank(number),
            _ => Who::Host {
                ranks: number,
                name: key(body.rest())?,
            },
        };
        Ok(Self {
            version,
            nonce,
            who,
        })
    }
}

/// What a store says to whom it lets in, with a proof over it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grant {
    /// To a rank.
    Welcome {
        /// How many ranks the job has.
        size: u32,
        /// How often this rank had left before.
        round: u32,
        /// What the store has drawn when it started.
        nonce: Nonce,
    },
    /// To a host: its ranks begin with this number.
    Place {
        /// The first.
        first: u32,
        /// How many ranks the job has.
        size: u32,
    },
}

impl Grant {
    /// Returns the kind of its frame, and of the body what precedes the proof.
    fn body(&self) -> (u8, Vec<u8>) {
        let (kind, numbers, nonce): (_, _, &[u8]) = match self {
            Self::Welcome { size, round, nonce } => (WELCOME, [*size, *round], nonce.as_bytes()),
            Self::Place { first, size } => (PLACE, [*first, *size], &[]),
        };
        let numbers = numbers.map(u32::to_le_bytes);
        (kind, [numbers.as_flattened(), nonce].concat())
    }
}

/// What a rank asks of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// The first message of every connection.
    Hello(Hello),
    /// The second one: whoever comes knows the job's secret.
    Proof(Proof),
    /// Publish a value under the sender's name.
    Put {
        /// The value's name.
        key: String,
        /// The value.
        value: Vec<u8>,
    },
    /// Ask for a value, now or as soon as it is there.
    Get {
        /// Whose value.
        rank: u32,
        /// The value's name.
        key: String,
    },
    /// Replied to once every rank has asked as often.
    Fence,
    /// Leave a descriptor for others.
    PutDescriptor,
    /// Ask for a rank's descriptor, now or as soon as it is there.
    GetDescriptor {
        /// Whose descriptor.
        rank: u32,
    },
    /// Say goodbye.
    Leave,
    /// Have the whole job ended.
    Abort {
        /// The job's exit status.
        status: u32,
    },
    /// From a host: one of its ranks has ended.
    Ended {
        /// Which.
        rank: u32,
        /// With which status; 128 + n after signal n.
        status: u32,
    },
}

/// What the store reports to a rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// The hello was accepted. With the proof that the store knows the job's secret.
    Granted(Grant, Proof),
    /// The request was carried out.
    Done,
    /// The value asked for.
    Value(Vec<u8>),
    /// The descriptor asked for comes beside this frame.
    Descriptor,
    /// The request was not carried out, and why.
    Refused(String),
    /// The hello was not accepted, and why: the store that takes it is still to come.
    Later(String),
    /// The hello was heard: whoever says it is to prove that it knows the job's secret.
    Challenge(Nonce),
    /// To a host: the job ends.
    End {
        /// With which status.
        status: u32,
    },
    /// An event: a rank said goodbye.
    Left(Rank),
    /// An event: a rank ended without a goodbye.
    Failed(Rank),
}

/// One frame as it came, its body not yet looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// What the body is.
    pub kind: u8,
    /// Which request it belongs to.
    pub id: RequestId,
    /// The body.
    pub body: Vec<u8>,
}

impl Request {
    /// The frame that carries this request.
    #[must_use]
    pub fn encode(&self, id: RequestId) -> Vec<u8> {
        match self {
            Self::Hello(hello) => {
                let (kind, body) = hello.body();
                frame(kind, id, &[&body])
            }
            Self::Proof(proof) => frame(11, id, &[proof.as_bytes()]),
            Self::Put { key, value } => {
                debug_assert!(key.len() <= MAX_KEY && value.len() <= MAX_VALUE);
                let key_length = (key.len() as u16).to_le_bytes();
                frame(2, id, &[&key_length, key.as_bytes(), value])
            }
            Self::Get { rank, key } => frame(3, id, &[&rank.to_le_bytes(), key.as_bytes()]),
            Self::Fence => frame(4, id, &[]),
            Self::PutDescriptor => frame(5, id, &[]),
            Self::GetDescriptor { rank } => frame(6, id, &[&rank.to_le_bytes()]),
            Self::Leave => frame(7, id, &[]),
            Self::Abort { status } => frame(8, id, &[&status.to_le_bytes()]),
            Self::Ended { rank, status } => {
                frame(10, id, &[&rank.to_le_bytes(), &status.to_le_bytes()])
            }
        }
    }

    /// The request that `frame` carries.
    ///
    /// # Errors
    /// When it carries none, or a body that breaks the format.
    pub fn decode(frame: &Frame) -> Result<Self, Malformed> {
        let mut body = Body(&frame.body);
        let request = match frame.kind {
            kind @ (HELLO | HOST) => Self::Hello(Hello::decode(kind, &mut body)?),
            2 => {
                let key_length = usize::from(body.u16()?);
                let key = key(body.take(key_length)?)?;
                Self::Put {
                    key,
                    value: value(body.rest())?,
                }
            }
            3 => Self::Get {
                rank: body.u32()?,
                key: key(body.rest())?,
            },
            4 => Self::Fence,
            5 => Self::PutDescriptor,
            6 => Self::GetDescriptor { rank: body.u32()? },
            7 => Self::Leave,
            8 => Self::Abort {
                status: body.u32()?,
            },
            11 => Self::Proof(body.proof()?),
            10 => Self::Ended {
                rank: body.u32()?,
                status: body.u32()?,
            },
            _ => return Err(Malformed("not a request")),
        };
        body.end()?;
        Ok(request)
    }
}

impl Reply {
    /// The frame that carries this reply.
    #[must_use]
    pub fn encode(&self, id: RequestId) -> Vec<u8> {
        match self {
            Self::Granted(grant, proof) => {
                let (kind, body) = grant.body();
                frame(kind, id, &[&body, proof.as_bytes()])
            }
            Self::Done => frame(66, id, &[]),
            Self::Value(bytes) => frame(67, id, &[bytes]),
            Self::Descriptor => frame(68, id, &[]),
            Self::Refused(why) => frame(69, id, &[cut(why)]),
            Self::Later(why) => frame(71, id, &[cut(why)]),
            Self::Challenge(nonce) => frame(72, id, &[nonce.as_bytes()]),
            Self::End { status } => frame(99, id, &[&status.to_le_bytes()]),
            Self::Left(rank) => frame(97, id, &[&rank.as_u32().to_le_bytes()]),
            Self::Failed(rank) => frame(98, id, &[&rank.as_u32().to_le_bytes()]),
        }
    }

    /// The reply that `frame` carries.
    ///
    /// # Errors
    /// When it carries none, or a body that breaks the format.
    pub fn decode(frame: &Frame) -> Result<Self, Malformed> {
        let mut body = Body(&frame.body);
        let reply = match frame.kind {
            WELCOME => {
                let grant = Grant::Welcome {
                    size: body.u32()?,
                    round: body.u32()?,
                    nonce: Nonce::from_bytes(body.array()?),
                };
                Self::Granted(grant, body.proof()?)
            }
            66 => Self::Done,
            67 => Self::Value(value(body.rest())?),
            68 => Self::Descriptor,
            69 => Self::Refused(String::from_utf8_lossy(body.rest()).into_owned()),
            71 => Self::Later(String::from_utf8_lossy(body.rest()).into_owned()),
            PLACE => {
                let grant = Grant::Place {
                    first: body.u32()?,
                    size: body.u32()?,
                };
                Self::Granted(grant, body.proof()?)
            }
            72 => Self::Challenge(Nonce::from_bytes(body.array()?)),
            99 => Self::End {
                status: body.u32()?,
            },
            97 => Self::Left(body.rank()?),
            98 => Self::Failed(body.rank()?),
            _ => return Err(Malformed("not a reply")),
        };
        body.end()?;
        Ok(reply)
    }
}

/// Cuts a stream of bytes into frames.
#[derive(Debug, Default)]
pub struct FrameBuffer {
    bytes: Vec<u8>,
    start: usize,
}

impl FrameBuffer {
    /// Takes bytes as they came from the socket. Never holds more than one frame and what one
    /// call brings, as long as [`FrameBuffer::next_frame`] is called until it finds none.
    pub fn extend(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.start);
        self.start = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole frame, if there is one.
    ///
    /// # Errors
    /// When the stream cannot be cut: an impossible length, or header bytes that must be zero
    /// and are not. The stream is useless from there on.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, Malformed> {
        self.next_frame_of(MAX_LENGTH)
    }

    /// As [`FrameBuffer::next_frame`], where the `length` field is `most` at most.
    pub(super) fn next_frame_of(&mut self, most: usize) -> Result<Option<Frame>, Malformed> {
        let rest = &self.bytes[self.start..];
        let Some((length, rest)) = rest.split_first_chunk::<4>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(*length) as usize;
        if !(HEADER..=most).contains(&length) {
            return Err(Malformed("impossible length"));
        }
        let Some((header, body)) = rest.get(..length).and_then(<[u8]>::split_first_chunk) else {
            return Ok(None);
        };
        let [kind, 0, 0, 0, id @ ..]: [u8; HEADER] = *header else {
            return Err(Malformed("reserved bytes in use"));
        };
        let frame = Frame {
            kind,
            id: RequestId(u32::from_le_bytes(id)),
            body: body.to_vec(),
        };
        self.start += 4 + length;
        Ok(Some(frame))
    }
}

fn frame(kind: u8, id: RequestId, parts: &[&[u8]]) -> Vec<u8> {
    let length = HEADER + parts.iter().map(|part| part.len()).sum::<usize>();
    debug_assert!(length <= MAX_LENGTH);
    let mut bytes = Vec::with_capacity(4 + length);
    bytes.extend_from_slice(&(length as u32).to_le_bytes());
    bytes.extend_from_slice(&[kind, 0, 0, 0]);
    bytes.extend_from_slice(&id.0.to_le_bytes());
    parts.iter().for_each(|part| bytes.extend_from_slice(part));
    bytes
}

/// Returns the text of a refusal, cut to what is sent of it.
fn cut(why: &str) -> &[u8] {
    let mut end = MAX_REFUSAL.min(why.len());
    while !why.is_char_boundary(end) {
        end -= 1;
    }
    &why.as_bytes()[..end]
}

fn key(bytes: &[u8]) -> Result<String, Malformed> {
    if bytes.len() > MAX_KEY {
        return Err(Malformed("key too long"));
    }
    str::from_utf8(bytes)
        .map(str::to_owned)
        .map_err(|_| Malformed("key is not UTF-8"))
}

fn value(bytes: &[u8]) -> Result<Vec<u8>, Malformed> {
    if bytes.len() > MAX_VALUE {
        return Err(Malformed("value too long"));
    }
    Ok(bytes.to_vec())
}

/// A body that is read from front to back.
struct Body<'a>(&'a [u8]);

impl<'a> Body<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self
            .0
            .split_at_checked(count)
            .ok_or(Malformed("body too short"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self
            .0
            .split_first_chunk()
            .ok_or(Malformed("body too short"))?;
        self.0 = rest;
        Ok(*taken)
    }

    fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    fn proof(&mut self) -> Result<Proof, Malformed> {
        self.array().map(Proof::from_bytes)
    }

    fn rank(&mut self) -> Result<Rank, Malformed> {
        let number = self.u32()?;
        if number > Rank::MAX {
            return Err(Malformed("rank out of range"));
        }
        Ok(Rank::new(number))
    }

    fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    fn end(&self) -> Result<(), Malformed> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(Malformed("bytes after the body's end"))
        }
    }
}

#[cfg(test)]
mod tests;
