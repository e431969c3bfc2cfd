//! The page before the records of a trace.

use super::HEADER;
use crate::storage::Capacity;

/// What a trace is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The rank whose engine it was.
    pub rank: u32,
    /// How many ranks the job has.
    pub ranks: u32,
    /// The engine that answered, with its parameters.
    pub engine: String,
    /// How many entries its queues may hold.
    pub capacity: Capacity,
    /// What the times are: `each` (a look at the clock for each record), `coarse` (for one in several), or a model's name.
    pub clock: String,
    /// Where the order of arrivals comes from: `recorded`, or the model that made it.
    pub arrivals: String,
    /// The most calls that a ring keeps, and 0 where all are kept.
    pub ring: u32,
    /// How many calls are missing before the first one.
    pub before: u64,
    /// The host.
    pub host: String,
    /// The program with its arguments, or what the trace was made from.
    pub command: String,
}

/// Why a page is no header.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadHeader {
    /// It does not begin as a trace does.
    #[error("it is no trace: it does not begin with '{FIRST}'")]
    Magic,
    /// Another version.
    #[error("it is a trace of version {0}, and this program reads version {VERSION}")]
    Version(String),
    /// It is too short.
    #[error("it ends within its header")]
    Short,
    /// The job has no such rank.
    #[error("it is of rank {rank}, and its job has {ranks}")]
    Rank {
        /// The rank.
        rank: u32,
        /// How many there are.
        ranks: u32,
    },
    /// A line is missing, or is none.
    #[error("its header has no {0}")]
    Lacks(&'static str),
}

impl Header {
    /// Returns the page. A command that is too long for it is cut.
    #[must_use]
    pub fn to_page(&self) -> [u8; HEADER] {
        let Capacity { posted, unexpected } = self.capacity;
        let (ring, before) = (more("ring", self.ring), more("before", self.before));
        // The command comes last: it alone may be too long.
        let text = format!(
            "{FIRST}{VERSION}\nrank: {}\nranks: {}\nengine: {}\nposted: {posted}\nunexpected: {unexpected}\nclock: {}\n\
             arrivals: {}\n{ring}{before}host: {}\ncommand: {}",
            self.rank,
            self.ranks,
            line(&self.engine),
            line(&self.clock),
            line(&self.arrivals),
            line(&self.host),
            line(&self.command),
        );
        let mut page = [0; HEADER];
        // One zero stays, so that the text has an end.
        let mut length = text.len().min(HEADER - 2);
        while !text.is_char_boundary(length) {
            length -= 1;
        }
        page[..length].copy_from_slice(&text.as_bytes()[..length]);
        page[length] = b'\n';
        page
    }

    /// Reads the page at the beginning of `bytes`.
    ///
    /// # Errors
    /// [`BadHeader`] for what [`Header::to_page`] does not make.
    pub fn from_page(bytes: &[u8]) -> Result<Self, BadHeader> {
        if !bytes.starts_with(FIRST.as_bytes()) {
            return Err(BadHeader::Magic);
        }
        let page = bytes.get(..HEADER).ok_or(BadHeader::Short)?;
        let length = page.iter().position(|byte| *byte == 0).unwrap_or(HEADER);
        let text = String::from_utf8_lossy(&page[..length]);
        let mut lines = text[FIRST.len()..].lines();
        let version = lines.next().unwrap_or_default();
        if version != VERSION {
            return Err(BadHeader::Version(version.to_owned()));
        }
        let named: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(": ")).collect();
        let text_of = |name: &'static str| {
            let mut all = named.iter();
            let found = all.find(|(known, _)| *known == name);
            found
                .map(|(_, value)| (*value).to_owned())
                .ok_or(BadHeader::Lacks(name))
        };
        // Those that not every trace has.
        let more = |name: &'static str| match text_of(name) {
            Ok(value) => value.parse::<u64>().map_err(|_| BadHeader::Lacks(name)),
            Err(_) => Ok(0),
        };
        let number = |name: &'static str| {
            let value = text_of(name)?.parse::<u32>();
            value.map_err(|_| BadHeader::Lacks(name))
        };
        let (rank, ranks) = (number("rank")?, number("ranks")?);
        if rank >= ranks {
            return Err(BadHeader::Rank { rank, ranks });
        }
        Ok(Self {
            rank,
            ranks,
            engine: text_of("engine")?,
            capacity: Capacity::new(number("posted")?, number("unexpected")?),
            clock: text_of("clock")?,
            arrivals: text_of("arrivals")?,
            ring: u32::try_from(more("ring")?).map_err(|_| BadHeader::Lacks("ring"))?,
            before: more("before")?,
            host: text_of("host")?,
            command: text_of("command")?,
        })
    }
}

/// A text on one line, of which something is left where it is empty: `name: ` is found by the space.
fn line(text: &str) -> String {
    let clean = text.replace(|letter: char| letter.is_control(), " ");
    match clean.is_empty() {
        true => "-".to_owned(),
        false => clean,
    }
}

/// A line that is left out where the number is 0.
fn more(name: &str, number: impl Into<u64>) -> String {
    match number.into() {
        0 => String::new(),
        number => format!("{name}: {number}\n"),
    }
}

const FIRST: &str = "tagwire match trace ";
/// Whoever changes what records or parts mean changes it.
const VERSION: &str = "2";

#[cfg(test)]
mod tests {
    use super::*;

    fn header(command: &str) -> Header {
        Header {
            rank: 3,
            ranks: 4,
            engine: "flajslik:bins=16,key=tag".to_owned(),
            capacity: Capacity::new(7, 1 << 20),
            clock: "each".to_owned(),
            arrivals: "recorded".to_owned(),
            ring: 1 << 20,
            before: 1 << 40,
            host: "here".to_owned(),
            command: command.to_owned(),
        }
    }

    #[test]
    fn a_header_is_read_as_it_was_written() {
        let one = header("halo --steps 20");
        assert_eq!(Header::from_page(&one.to_page()), Ok(one));
        let spread = header("two\nlines");
        let read = Header::from_page(&spread.to_page()).unwrap();
        assert_eq!(read.command, "two lines");
        let long = header(&"ä".repeat(HEADER));
        let read = Header::from_page(&long.to_page()).unwrap();
        assert!(read.command.len() > HEADER / 2 && long.command.starts_with(&read.command));
    }

    #[test]
    fn what_is_no_header_is_refused_with_the_reason() {
        let page = header("x").to_page();
        assert_eq!(Header::from_page(b"ELF"), Err(BadHeader::Magic));
        assert_eq!(Header::from_page(&page[..100]), Err(BadHeader::Short));
        let mut other = page;
        other[FIRST.len()] = b'1';
        let refused = Header::from_page(&other).unwrap_err().to_string();
        assert_eq!(
            refused,
            "it is a trace of version 1, and this program reads version 2"
        );
        let cut = String::from_utf8_lossy(&page).replace("ranks: 4", "ranks: x");
        assert_eq!(
            Header::from_page(cut.as_bytes()),
            Err(BadHeader::Lacks("ranks"))
        );
        let far = String::from_utf8_lossy(&page).replace("rank: 3", "rank: 99");
        let refused = Header::from_page(far.as_bytes()).unwrap_err().to_string();
        assert_eq!(refused, "it is of rank 99, and its job has 4");
    }
}
