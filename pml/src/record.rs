//! Recording: what ob1's engine is given, into a file for each rank. The format is that of [`tagwire_matching::trace`].
//!
//! ```text
//!   Matcher -> engine, Recorded -> Recorder: time, place -> Chunk: a mapped piece of the file
//! ```
//!
//! Records are stored into the file's mapping, so that those of a rank that dies are there up to its last call. The file grows by
//! chunks, whose room on the disk is reserved before one is mapped. Where there is none, and at the limit, the last record says
//! how many calls are missing. A ring goes on in its first chunk instead.

mod chunk;

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tagwire_base::clock::Time;
use tagwire_base::config::Config;
use tagwire_base::{Clock, topology};
use tagwire_matching::trace::{BEGINNING, HEADER, Header, Packed, Queues, RECORD, Recorded, Sink};
use tagwire_matching::{AnyEngine, Capacity, EngineName, Grade};

use self::chunk::Chunk;
use crate::error::{Error, Result};

/// Where and how a rank's matching is recorded.
#[derive(Debug, Clone)]
pub struct Recording {
    /// The folder of the traces; it is made where it is not there.
    pub folder: PathBuf,
    /// The clock is read for one record in so many.
    pub every: u32,
    /// Most bytes of a trace; it is rounded up to a whole number of chunks.
    pub limit: u64,
    /// Calls that are kept, the last ones, whatever the limit; 0: all.
    pub ring: u32,
}

/// One file of records that grows, or of which the oldest are written over.
pub(crate) struct Recorder {
    chunk: Chunk,
    /// The clock is read for one record in so many, and next for the one behind so many that are not near.
    every: u32,
    unread: u32,
    last: Time,
    clock: Clock,
    file: File,
    path: PathBuf,
    /// Where the chunk begins in the file, in bytes.
    begin: u64,
    limit: u64,
    ring: Option<Ring>,
    /// Calls that are not in the file; the last record says how many.
    lost: Option<u64>,
}

/// What a file has of which the oldest chunk is written over.
struct Ring {
    /// How many there are at most.
    chunks: u64,
    /// Whether all of them were written.
    is_full: bool,
    /// Calls before the chunk.
    calls: u64,
    /// Places of the chunk that have no call.
    others: u64,
}

/// What is called directly beside the engines of the table: the default one, recorded.
pub(crate) type Direct = Recorded<Recorder>;

impl Recording {
    /// Returns what `config` asks for; `None` where nothing is recorded.
    #[must_use]
    pub fn from_config(config: &Config) -> Option<Self> {
        let folder = config.text("record");
        let every = match config.choice("record-clock") {
            "coarse" => COARSE,
            _ => 1,
        };
        (!folder.is_empty()).then(|| Self {
            folder: PathBuf::from(folder),
            every,
            limit: config.bytes("record-limit") as u64,
            ring: config.integer("record-ring") as u32,
        })
    }

    /// Returns the engine, each of whose calls goes into a file of this rank.
    ///
    /// # Errors
    /// [`Error::Record`] when the file cannot be made, [`Error::Unrecorded`] when others cannot repeat what the engine does.
    pub(crate) fn open(
        &self,
        engine: &EngineName,
        capacity: Capacity,
        (rank, ranks): (u32, u32),
        clock: Clock,
    ) -> Result<AnyEngine<Direct>> {
        if engine.grade() != Grade::Exact {
            return Err(Error::Unrecorded {
                matcher: engine.to_string(),
                why: "does not match as the others do, so that they could not repeat the trace",
            });
        }
        if !engine.counts_entries() {
            return Err(Error::Unrecorded {
                matcher: engine.to_string(),
                why: "does not count its entries as a trace does without guard=on",
            });
        }
        let mut arguments = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
        let program = arguments.next().unwrap_or_default();
        let name = Path::new(&program).file_name();
        let name = name.map_or_else(|| "program".into(), |name| name.to_string_lossy());
        let path = self.folder.join(format!("{name}.{rank}.twm"));
        let words: Vec<String> = std::iter::once(name.into_owned())
            .chain(arguments)
            .collect();
        let clock_kind = match self.every {
            1 => "each",
            _ => "coarse",
        };
        let host = topology::Topology::of_machine().host;
        let header = Header {
            rank,
            ranks,
            engine: engine.to_string(),
            capacity,
            clock: clock_kind.to_owned(),
            arrivals: "recorded".to_owned(),
            ring: self.ring,
            before: 0,
            host: host.unwrap_or_default(),
            command: words.join(" "),
        };
        let recorder = Recorder::create(self, path.clone(), &header, clock);
        let recorder = recorder.map_err(|error| Error::Record { path, error })?;
        Ok(engine.open_recorded(capacity, recorder))
    }
}

impl Recorder {
    fn create(
        recording: &Recording,
        path: PathBuf,
        header: &Header,
        clock: Clock,
    ) -> io::Result<Self> {
        fs::create_dir_all(&recording.folder)?;
        // A trace of before may be mapped by a process that still writes it: it is replaced and not overwritten.
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = File::options();
        let mut file = options
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)?;
        file.write_all(&header.to_page())?;
        let begin = HEADER as u64;
        let chunk = Chunk::map(&file, begin)?;
        let mut recorder = Self {
            chunk,
            every: recording.every,
            unread: 0,
            last: clock.now(),
            clock,
            file,
            path,
            begin,
            limit: recording.limit,
            ring: (recording.ring > 0).then(|| Ring::of(recording.ring)),
            lost: None,
        };
        recorder.begin_chunk(Queues::default());
        Ok(recorder)
    }

    /// Stores a record for which the clock is to be read, or before which the chunk is full.
    fn store_slowly(&mut self, record: Packed, queues: &dyn Fn() -> Queues) {
        if self.unread == 0 {
            self.unread = self.every;
            self.store_with_time(record, queues);
        } else {
            self.store(record, 0, queues);
        }
        self.unread -= 1;
        self.unread -= self.chunk.bring_near(self.unread as usize) as u32;
    }

    /// Stores a record with the nanoseconds since the clock was read before.
    fn store_with_time(&mut self, record: Packed, queues: &dyn Fn() -> Queues) {
        let now = self.clock.now();
        let nanos = now.since(self.last).as_nanos();
        self.last = now;
        if let Ok(nanos) = u32::try_from(nanos) {
            return self.store(record, nanos, queues);
        }
        let nanos = u64::try_from(nanos).unwrap_or(u64::MAX);
        let time = Packed::time(nanos).after(0);
        // Where it has no place before the call, it has one behind it, unless the trace ends there.
        let is_before = self.store_other(time);
        self.store(record, 0, queues);
        if !is_before && self.lost.is_none() {
            self.store_other(time);
        }
    }

    fn store(&mut self, record: Packed, nanos: u32, queues: &dyn Fn() -> Queues) {
        match self.chunk.take() {
            // The last place is for a record after which there is a chunk more, or none.
            Some(place) => *place = record.after(nanos),
            None => self.store_last(record, nanos, queues),
        }
    }

    /// Stores what is no call; returns whether there was a place.
    fn store_other(&mut self, bytes: [u8; RECORD]) -> bool {
        let place = self.chunk.take();
        let is_stored = place.map(|place| *place = bytes).is_some();
        if let (true, Some(ring)) = (is_stored, &mut self.ring) {
            ring.others += 1;
        }
        is_stored
    }

    /// Goes on in another chunk; says what is missing where there is none.
    fn store_last(&mut self, record: Packed, nanos: u32, queues: &dyn Fn() -> Queues) {
        if let Some(lost) = &mut self.lost {
            *lost += 1;
            let lost = Packed::lost(*lost);
            return self.write_last(lost.after(0));
        }
        match self.next_chunk() {
            Ok((begin, chunk)) => {
                self.write_last(record.after(nanos));
                (self.begin, self.chunk) = (begin, chunk);
                if let Some(ring) = &mut self.ring {
                    ring.calls += Chunk::LAST as u64 + 1 - ring.others;
                    ring.others = 0;
                }
                self.begin_chunk(queues());
            }
            Err(why) => {
                tracing::warn!("the trace {} ends here: {why}", self.path.display());
                self.lost = Some(1);
                self.write_last(Packed::lost(1).after(0));
            }
        }
    }

    /// Returns where the next chunk begins, and the chunk.
    fn next_chunk(&mut self) -> io::Result<(u64, Chunk)> {
        let mut begin = self.begin + Chunk::BYTES;
        let Some(ring) = &mut self.ring else {
            if begin >= self.limit {
                return Err(io::Error::other(
                    "it is at its limit (setting 'record-limit')",
                ));
            }
            return Ok((begin, Chunk::map(&self.file, begin)?));
        };
        if begin >= HEADER as u64 + ring.chunks * Chunk::BYTES {
            begin = HEADER as u64;
            ring.is_full = true;
        }
        let mut chunk = Chunk::map(&self.file, begin)?;
        if ring.is_full {
            chunk.clear();
        }
        Ok((begin, chunk))
    }

    /// Stores what the chunks of a ring begin with.
    fn begin_chunk(&mut self, queues: Queues) {
        let Some(ring) = &self.ring else { return };
        let [lengths, queued] = Packed::queues(queues);
        for record in [Packed::begin(ring.calls), lengths, queued] {
            self.store_other(record.after(0));
        }
    }

    fn write_last(&mut self, bytes: [u8; RECORD]) {
        if let Some(place) = self.chunk.last() {
            *place = bytes;
        }
    }
}

impl Ring {
    /// A ring that has the last `calls` also when its last chunk has only begun.
    fn of(calls: u32) -> Self {
        let calls_of_chunk = (Chunk::LAST + 1 - BEGINNING) as u64;
        Self {
            chunks: u64::from(calls).div_ceil(calls_of_chunk) + 1,
            is_full: false,
            calls: 0,
            others: 0,
        }
    }
}

impl Sink for Recorder {
    #[inline(always)]
    fn place(&mut self) -> Option<&mut [u8; RECORD]> {
        self.chunk.take_near()
    }

    fn note(&mut self, record: Packed, queues: impl Fn() -> Queues) {
        self.store_slowly(record, &queues);
    }
}

/// The file ends behind the last record.
impl Drop for Recorder {
    fn drop(&mut self) {
        // The chunks of a ring stay whole once one was written over.
        let records = match (&self.ring, self.lost) {
            (Some(Ring { is_full: true, .. }), _) => return,
            (_, None) => self.chunk.taken(),
            (_, Some(_)) => Chunk::LAST + 1,
        };
        let length = self.begin + (records * RECORD) as u64;
        if let Err(error) = self.file.set_len(length) {
            tracing::warn!("the trace {} keeps its room: {error}", self.path.display());
        }
    }
}

/// With a coarse clock, records for one look at it.
const COARSE: u32 = 64;

#[cfg(all(test, not(loom)))]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use std::time::Duration;

    use tagwire_base::clock::ManualClock;
    use tagwire_base::{ContextId, Rank, Tag};
    use tagwire_matching::trace::{Both, Event, Record, Size};
    use tagwire_matching::{Cookie, Engine, Envelope, Pattern};

    use super::*;

    fn recording(folder: &Path, limit: u64) -> Recording {
        Recording {
            folder: folder.to_owned(),
            every: 1,
            limit,
            ring: 0,
        }
    }

    fn message(tag: i32) -> Envelope {
        Envelope {
            source: Rank::new(0),
            tag: Tag::user(tag).unwrap(),
            context: ContextId::WORLD,
        }
    }

    /// The folder's one trace: its header and records.
    fn read(folder: &Path) -> (Header, Vec<Record>) {
        let mut files = fs::read_dir(folder).unwrap();
        let bytes = fs::read(files.next().unwrap().unwrap().path()).unwrap();
        assert!(files.next().is_none(), "one rank, one file");
        let header = Header::from_page(&bytes).unwrap();
        let records = bytes[HEADER..].as_chunks::<RECORD>().0.iter();
        let read = records.map_while(|bytes| Record::from_bytes(*bytes).unwrap());
        (header, read.collect())
    }

    fn open(recording: &Recording, clock: Clock) -> AnyEngine<Direct> {
        let name: EngineName = "list".parse().unwrap();
        let capacity = Capacity::new(8, 1 << 20);
        recording.open(&name, capacity, (2, 3), clock).unwrap()
    }

    #[test]
    fn records_are_there_while_the_rank_lives_and_after_it() {
        let folder = tempfile::tempdir().unwrap();
        let clock = ManualClock::default();
        let mut engine = open(&recording(folder.path(), 1 << 30), clock.clock());
        for tag in 0..100 {
            clock.advance(Duration::from_nanos(7));
            let _ = engine.arrive_sized(message(tag), Cookie(0), 64);
        }
        clock.advance(Duration::from_secs(5));
        let _ = engine.arrive_sized(message(100), Cookie(0), 64);
        let (header, alive) = read(folder.path());
        assert_eq!((header.rank, header.ranks), (2, 3));
        assert_eq!((&*header.engine, header.capacity.posted), ("list", 8));
        drop(engine);
        let (_, records) = read(folder.path());
        assert_eq!(records, alive);
        assert_eq!(records.len(), 102);
        for (record, tag) in records.iter().zip(0..100) {
            let event = Event::Arrive(message(tag), Size::of(64));
            assert_eq!((record.event, record.after), (event, 7));
        }
        assert_eq!(records[100].event, Event::Time(5_000_000_000));
    }

    #[test]
    fn a_trace_goes_on_over_chunks_up_to_its_limit_and_says_what_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let limit = 2 * Chunk::BYTES;
        let mut engine = open(&recording(folder.path(), limit), Clock::default());
        // Two chunks, without the last place, and three.
        let count = 2 * (Chunk::LAST as i32 + 1) - 1 + 3;
        for tag in 0..count {
            let _ = engine.arrive_sized(message(tag), Cookie(0), 0);
        }
        for is_open in [true, false] {
            let (_, records) = read(folder.path());
            assert_eq!(records.last().unwrap().event, Event::Lost(3), "{is_open}");
            assert_eq!(records.len(), 2 * (Chunk::LAST + 1));
            let tags = records.iter().zip(0..count - 3);
            for (record, tag) in tags {
                assert_eq!(record.event.message(), Some(message(tag)));
            }
            if is_open {
                drop(std::mem::replace(
                    &mut engine,
                    AnyEngine::by_name("list", Capacity::default())
                        .unwrap()
                        .beside(),
                ));
            }
        }
    }

    #[test]
    fn long_times_are_not_counted_as_calls_that_are_missing() {
        // The call that is the first to be lost has a long time before it, or a short one.
        for before in [10, 0] {
            let folder = tempfile::tempdir().unwrap();
            let clock = ManualClock::default();
            let mut engine = open(&recording(folder.path(), Chunk::BYTES), clock.clock());
            for tag in 0..Chunk::LAST as i32 {
                let _ = engine.arrive_sized(message(tag), Cookie(0), 0);
            }
            for seconds in [before, 10, 10] {
                clock.advance(Duration::from_secs(seconds));
                let _ = engine.arrive_sized(message(0), Cookie(0), 0);
            }
            let (_, records) = read(folder.path());
            assert_eq!(records.last().unwrap().event, Event::Lost(3), "{before}");
        }
    }

    /// The first chunks are written over, and each says how much came before it and what was queued then.
    #[test]
    fn a_ring_keeps_the_last_calls() {
        let folder = tempfile::tempdir().unwrap();
        let mut ring = recording(folder.path(), Chunk::BYTES);
        ring.ring = 1000;
        let mut opened = Some(open(&ring, Clock::default()));
        let engine = opened.as_mut().unwrap();
        let each = (Chunk::LAST + 1 - BEGINNING) as i32;
        let count = 2 * each + 500;
        // The queue of receives has room for 8; the first message is taken at once, the others stay.
        let first = Pattern::exact(message(0));
        let _ = engine.post(first, Cookie(0));
        for tag in 0..count {
            let _ = engine.arrive_sized(message(tag), Cookie(0), 0);
        }
        let calls = |chunk: &[[u8; RECORD]]| -> Vec<Event> {
            let read = chunk
                .iter()
                .map(|bytes| Record::from_bytes(*bytes).unwrap());
            read.map_while(|record| Some(record?.event)).collect()
        };
        for _ in 0..2 {
            let bytes = fs::read(
                folder
                    .path()
                    .read_dir()
                    .unwrap()
                    .next()
                    .unwrap()
                    .unwrap()
                    .path(),
            );
            let bytes = bytes.unwrap();
            assert_eq!(Header::from_page(&bytes).unwrap().ring, 1000);
            let records = bytes[HEADER..].as_chunks::<RECORD>().0;
            let mut chunks = records.chunks(Chunk::LAST + 1);
            let (third, second) = (chunks.next().unwrap(), chunks.next().unwrap());
            assert!(chunks.next().is_none());
            // The post is one of the first chunk.
            for (chunk, before, length) in [(second, each, each), (third, 2 * each, 501)] {
                let read = calls(chunk);
                assert_eq!(read.len() as i32, BEGINNING as i32 + length);
                let queued = Both {
                    posted: 1,
                    unexpected: before as u32 - 2,
                };
                let lengths = Both {
                    posted: 0,
                    ..queued
                };
                assert_eq!(
                    read[..BEGINNING],
                    [
                        Event::Begin(before as u64),
                        Event::Lengths(lengths),
                        Event::Queued(queued)
                    ]
                );
                let last = before - 1 + length - 1;
                assert_eq!(read.last().unwrap().message(), Some(message(last)));
            }
            drop(opened.take());
        }
    }

    #[test]
    fn a_link_in_place_of_a_trace_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (traces, victim) = (folder.path().join("traces"), folder.path().join("victim"));
        fs::write(&victim, "precious").unwrap();
        drop(open(&recording(&traces, 1 << 20), Clock::default()));
        let trace = fs::read_dir(&traces).unwrap().next().unwrap().unwrap();
        fs::remove_file(trace.path()).unwrap();
        std::os::unix::fs::symlink(&victim, trace.path()).unwrap();
        drop(open(&recording(&traces, 1 << 20), Clock::default()));
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
        assert!(fs::symlink_metadata(trace.path()).unwrap().is_file());
    }

    #[test]
    fn what_cannot_be_recorded_is_refused_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let name: EngineName = "list".parse().unwrap();
        let open = |engine: &EngineName, folder: &Path| {
            let opened = recording(folder, 1 << 20).open(
                engine,
                Capacity::default(),
                (0, 1),
                Clock::default(),
            );
            opened.unwrap_err().to_string()
        };
        let refused = open(&name, &file.join("under"));
        assert!(refused.contains("setting 'record'"), "{refused}");
        let rotate: EngineName = "source:any=rotate".parse().unwrap();
        let refused = open(&rotate, folder.path());
        assert!(
            refused.contains("'source:any=rotate' does not match"),
            "{refused}"
        );
    }
}
