//! Recording: what ob1's engine is given, into a file for each rank. The format is that of [`tagwire_matching::trace`].
//!
//! ```text
//!   Matcher -> engine, Recorded -> Recorder: time, place -> Chunk: the mapped first part of the file -> the others, by copies
//! ```
//!
//! Records are stored into a mapping of the file's first part, so that those of a rank that dies are there up to its last call.
//! When it is full it is written behind the others, and filled again. Where there is no room for that on the disk, and at the
//! limit, the last record says how many calls are missing. A ring writes over its oldest part instead.

mod chunk;
mod laps;

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tagwire_base::config::Config;
use tagwire_base::{Clock, topology};
use tagwire_matching::trace::{BEGINNING, HEADER, Header, Packed, Queues, RECORD, Recorded, Sink};
use tagwire_matching::{AnyEngine, Capacity, EngineName, Grade};

use self::chunk::Chunk;
use self::laps::Laps;
use crate::error::{Error, Result};

/// Where and how a rank's matching is recorded.
#[derive(Debug, Clone)]
pub struct Recording {
    /// The folder of the traces; it is made where it is not there.
    pub folder: PathBuf,
    /// The clock is read for one record in so many.
    pub every: u32,
    /// Most bytes of a trace; it is rounded up to a whole number of parts.
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
    laps: Laps,
    file: File,
    path: PathBuf,
    room: Room,
    /// Where the room ends that the disk keeps for parts to come.
    reserved: u64,
    /// How often the chunk was written to another part.
    moved: u64,
    /// Calls before the chunk.
    calls: u64,
    /// Places of the chunk that have no call.
    others: u64,
    /// Calls that are not in the file; the last record says how many.
    lost: Option<u64>,
}

/// The parts of a file behind the mapped one.
enum Room {
    /// So many at most, and then the trace ends.
    Limit(u64),
    /// So many, the oldest of which is written over.
    Ring(u64),
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
        let chunk = Chunk::map(&file, HEADER as u64)?;
        let mut recorder = Self {
            chunk,
            every: recording.every,
            unread: 0,
            laps: Laps::new(clock),
            reserved: if chunk::is_in_memory(&file) { NEVER } else { 0 },
            file,
            path,
            room: Room::of(recording),
            moved: 0,
            calls: 0,
            others: 0,
            lost: None,
        };
        recorder.begin_chunk(Queues::default());
        Ok(recorder)
    }

    /// Stores a record for which the clock is to be read, or before which the chunk is full.
    fn store_slowly(&mut self, record: Packed, queues: &dyn Fn() -> Queues) {
        if self.every == 1 {
            return self.store_with_time(record, queues);
        }
        if self.unread == 0 {
            self.unread = self.every;
            self.store_with_time(record, queues);
        } else {
            self.store(record, 0, queues);
        }
        self.unread -= 1;
        self.unread -= self.chunk.bring_near(self.unread as usize) as u32;
    }

    /// Stores a record with its time, where there is a place and the time is known by the processor's counter. Returns whether it did.
    #[inline(always)]
    fn store_by_counter(&mut self, record: Packed) -> bool {
        let Self { chunk, laps, .. } = self;
        chunk.take_if(|| Some(record.after(laps.lap_by_counter()?)))
    }

    /// Stores a record with the nanoseconds since the clock was read before.
    fn store_with_time(&mut self, record: Packed, queues: &dyn Fn() -> Queues) {
        let nanos = self.laps.lap();
        if let Ok(nanos) = u32::try_from(nanos) {
            return self.store(record, nanos, queues);
        }
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
        self.others += u64::from(is_stored);
        is_stored
    }

    /// Empties the chunk into another part; says what is missing where there is none.
    fn store_last(&mut self, record: Packed, nanos: u32, queues: &dyn Fn() -> Queues) {
        if let Some(lost) = &mut self.lost {
            *lost += 1;
            let lost = Packed::lost(*lost);
            return self.write_last(lost.after(0));
        }
        self.write_last(record.after(nanos));
        match self.move_chunk() {
            Ok(()) => {
                self.calls += Chunk::LAST as u64 + 1 - self.others;
                self.others = 0;
                self.begin_chunk(queues());
            }
            Err(why) => {
                tracing::warn!("the trace {} ends here: {why}", self.path.display());
                self.lost = Some(1);
                self.write_last(Packed::lost(1).after(0));
            }
        }
    }

    fn move_chunk(&mut self) -> io::Result<()> {
        let part = match self.room {
            Room::Ring(parts) => self.moved % parts,
            Room::Limit(parts) if self.moved < parts => self.moved,
            Room::Limit(_) => {
                return Err(io::Error::other(
                    "it is at its limit (setting 'record-limit')",
                ));
            }
        };
        let begin = end_of(part);
        self.reserve(begin);
        self.chunk.move_to(&self.file, begin)?;
        self.moved += 1;
        Ok(())
    }

    /// Has the disk keep room for the part at `begin` and for those behind it, in one go.
    ///
    /// A part that is written where blocks are already takes a fifth less time. Where they cannot be had, the write itself fails.
    fn reserve(&mut self, begin: u64) {
        if begin < self.reserved {
            return;
        }
        let end = end_of(self.room.parts()).min(begin + AHEAD);
        self.reserved = match chunk::reserve_blocks(&self.file, begin..end) {
            Ok(()) => end,
            Err(_) => NEVER,
        };
    }

    /// Stores what a part begins with.
    fn begin_chunk(&mut self, queues: Queues) {
        let [lengths, queued] = Packed::queues(queues);
        for record in [Packed::begin(self.calls), lengths, queued] {
            self.store_other(record.after(0));
        }
    }

    fn write_last(&mut self, bytes: [u8; RECORD]) {
        if let Some(place) = self.chunk.last() {
            *place = bytes;
        }
    }
}

impl Room {
    fn of(recording: &Recording) -> Self {
        match recording.ring {
            0 => Self::Limit(recording.limit.div_ceil(Chunk::BYTES).saturating_sub(1)),
            // The last calls are there also when the mapped part has only begun.
            calls => Self::Ring(u64::from(calls).div_ceil(CALLS)),
        }
    }

    /// The most parts behind the mapped one.
    const fn parts(&self) -> u64 {
        match self {
            Self::Limit(parts) | Self::Ring(parts) => *parts,
        }
    }
}

impl Sink for Recorder {
    #[inline(always)]
    fn place(&mut self) -> Option<&mut [u8; RECORD]> {
        self.chunk.take_near()
    }

    #[inline(always)]
    fn keep(&mut self, record: Packed) -> bool {
        self.every == 1 && self.store_by_counter(record)
    }

    fn note(&mut self, record: Packed, queues: impl Fn() -> Queues) {
        self.store_slowly(record, &queues);
    }
}

/// A file of one part ends behind its last record, another one behind its last part.
impl Drop for Recorder {
    fn drop(&mut self) {
        let length = match self.moved.min(self.room.parts()) {
            // With a record that ends it: without one it was cut.
            0 if self.lost.is_none() => (HEADER + (self.chunk.taken() + 1) * RECORD) as u64,
            parts => end_of(parts),
        };
        if let Err(error) = self.file.set_len(length) {
            tracing::warn!("the trace {} keeps its room: {error}", self.path.display());
        }
    }
}

/// Where the file ends that has so many parts behind the mapped one.
const fn end_of(parts: u64) -> u64 {
    HEADER as u64 + (1 + parts) * Chunk::BYTES
}

/// Bytes of parts that the disk keeps room for in one go.
const AHEAD: u64 = 16 << 20;

/// What no file reaches: nothing more is reserved.
const NEVER: u64 = u64::MAX;

/// With a coarse clock, records for one look at it.
const COARSE: u32 = 64;

/// Calls of a part.
const CALLS: u64 = (Chunk::LAST + 1 - BEGINNING) as u64;

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

    /// The folder's one trace: its header, and the records of its parts behind their beginnings, in the order of the file.
    fn read_parts(folder: &Path) -> (Header, Vec<Vec<Record>>) {
        let mut files = fs::read_dir(folder).unwrap();
        let bytes = fs::read(files.next().unwrap().unwrap().path()).unwrap();
        assert!(files.next().is_none(), "one rank, one file");
        let header = Header::from_page(&bytes).unwrap();
        let records = bytes[HEADER..].as_chunks::<RECORD>().0;
        let parts = records.chunks(Chunk::LAST + 1).map(|part| {
            let read = part.iter();
            read.map_while(|bytes| Record::from_bytes(*bytes).unwrap())
                .collect()
        });
        (header, parts.collect())
    }

    /// The folder's one trace: its header, and its records without the beginnings of parts.
    fn read(folder: &Path) -> (Header, Vec<Record>) {
        let (header, mut parts) = read_parts(folder);
        // What is reserved has nothing.
        parts.retain(|part| !part.is_empty());
        parts.sort_by_key(|part| match part[0].event {
            Event::Begin(calls) => calls,
            other => panic!("a part begins with {other:?}"),
        });
        let records = parts.iter().flat_map(|part| part[BEGINNING..].to_vec());
        (header, records.collect())
    }

    fn open(recording: &Recording, clock: Clock) -> AnyEngine<Direct> {
        open_engine("list", recording, clock)
    }

    fn open_engine(name: &str, recording: &Recording, clock: Clock) -> AnyEngine<Direct> {
        let name: EngineName = name.parse().unwrap();
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
    fn a_trace_goes_on_over_parts_up_to_its_limit_and_says_what_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let limit = 2 * Chunk::BYTES;
        let mut engine = open(&recording(folder.path(), limit), Clock::default());
        // Two parts, without the last place, and three.
        let count = 2 * CALLS as i32 - 1 + 3;
        for tag in 0..count {
            let _ = engine.arrive_sized(message(tag), Cookie(0), 0);
        }
        for is_open in [true, false] {
            let (_, records) = read(folder.path());
            assert_eq!(records.last().unwrap().event, Event::Lost(3), "{is_open}");
            assert_eq!(records.len() as u64, 2 * CALLS);
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

    /// What the disk kept for parts that never came is given back.
    #[test]
    fn a_trace_of_many_parts_ends_behind_the_last() {
        let folder = tempfile::tempdir().unwrap();
        let mut engine = open(&recording(folder.path(), 1 << 30), Clock::default());
        let count = 2 * CALLS as i32 + 5;
        for tag in 0..count {
            let _ = engine.arrive_sized(message(tag), Cookie(0), 0);
        }
        let (_, alive) = read(folder.path());
        assert_eq!(alive.len() as i32, count);
        drop(engine);
        let (_, records) = read(folder.path());
        assert_eq!(records, alive);
        let trace = fs::read_dir(folder.path()).unwrap().next().unwrap();
        let length = trace.unwrap().metadata().unwrap().len();
        assert_eq!(length, HEADER as u64 + 3 * Chunk::BYTES);
    }

    /// Times by the counter, and by the clock in between.
    #[test]
    fn each_record_has_the_time_since_the_one_before() {
        let folder = tempfile::tempdir().unwrap();
        let clock = Clock::default();
        let before = clock.now();
        let mut engine = open_engine("bins", &recording(folder.path(), 1 << 30), clock.clone());
        let start = clock.now();
        let mut pairs = 0;
        while clock.now().since(start) < Duration::from_millis(4) {
            let _ = engine.post(Pattern::exact(message(pairs)), Cookie(0));
            let _ = engine.arrive_sized(message(pairs), Cookie(0), 64);
            pairs += 1;
        }
        let _ = engine.expects(message(0));
        let most = clock.now().since(before);
        let (_, records) = read(folder.path());
        assert_eq!(records.len() as i32, 2 * pairs + 1);
        for (pair, tag) in records.chunks_exact(2).zip(0..pairs) {
            let post = Event::Post(Pattern::exact(message(tag)));
            let arrival = Event::Arrive(message(tag), Size::of(64));
            assert_eq!((pair[0].event, pair[0].matched), (post, false));
            assert_eq!((pair[1].event, pair[1].matched), (arrival, true));
        }
        let sum: u64 = records.iter().map(|record| u64::from(record.after)).sum();
        // The counter is ahead of the clock by less than it is looked at without it.
        let most = most + Duration::from_millis(1);
        let told = Duration::from_nanos(sum);
        assert!(told >= Duration::from_millis(3) && told <= most, "{told:?}");
    }

    #[test]
    fn long_times_are_not_counted_as_calls_that_are_missing() {
        // The call that is the first to be lost has a long time before it, or a short one.
        for before in [10, 0] {
            let folder = tempfile::tempdir().unwrap();
            let clock = ManualClock::default();
            let mut engine = open(&recording(folder.path(), Chunk::BYTES), clock.clock());
            for tag in 0..CALLS as i32 - 1 {
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

    /// The oldest part is written over, and each says how much came before it and what was queued then.
    #[test]
    fn a_ring_keeps_the_last_calls() {
        let folder = tempfile::tempdir().unwrap();
        let mut ring = recording(folder.path(), Chunk::BYTES);
        ring.ring = CALLS as u32 + 1;
        let mut opened = Some(open(&ring, Clock::default()));
        let engine = opened.as_mut().unwrap();
        let each = CALLS as i32;
        let count = 3 * each + 500;
        // The queue of receives has room for 8; the first message is taken at once, the others stay.
        let first = Pattern::exact(message(0));
        let _ = engine.post(first, Cookie(0));
        for tag in 0..count {
            let _ = engine.arrive_sized(message(tag), Cookie(0), 0);
        }
        for _ in 0..2 {
            let (header, parts) = read_parts(folder.path());
            assert_eq!(header.ring, ring.ring);
            // The post is one of the first part, which the third has written over.
            let wanted = [(3 * each, 501), (2 * each, each), (each, each)];
            assert_eq!(parts.len(), wanted.len());
            for (part, (before, length)) in parts.iter().zip(wanted) {
                assert_eq!(part.len() as i32, BEGINNING as i32 + length);
                let queued = Both {
                    posted: 1,
                    unexpected: before as u32 - 2,
                };
                let lengths = Both {
                    posted: 0,
                    ..queued
                };
                let events = part[..BEGINNING].iter().map(|record| record.event);
                assert_eq!(
                    events.collect::<Vec<_>>(),
                    [
                        Event::Begin(before as u64),
                        Event::Lengths(lengths),
                        Event::Queued(queued)
                    ]
                );
                let last = before - 1 + length - 1;
                let event = part.last().unwrap().event;
                assert_eq!(event.message(), Some(message(last)));
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
