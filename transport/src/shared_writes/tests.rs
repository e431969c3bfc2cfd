use super::trial::Trial;
use super::*;

const LEAST: usize = 4096;
const ALL: Ways = Ways::PLAIN.and(Way::Stream).and(Way::Reuse);
const BOTH: Ways = Ways::PLAIN.and(Way::Stream);

/// A writer whose copies take so many ticks for each way, by a clock of its own.
struct Writer {
    trial: Trial,
    now: u64,
    left: u32,
    /// Whether there is memory to reuse.
    has_memory: bool,
    /// Ticks between the answer to a copy and the next one; `None` where nothing is answered.
    pause: Option<u64>,
    /// Ticks between two copies without an answer.
    gap: u64,
}

impl Writer {
    fn new(ways: Ways) -> Self {
        Self {
            trial: Trial::new(ways),
            now: 0,
            left: 0,
            has_memory: true,
            pause: None,
            gap: 0,
        }
    }

    /// Makes one copy. Returns its way, and how long it took.
    fn copy(&mut self, times: [u64; 3]) -> (Way, u64) {
        let step = match self.left {
            0 => {
                let told = self.trial.way();
                let (step, left) = self.trial.begin(LEAST, self.now);
                let is_given_up = told != step.way && step.way == self.trial.known().0;
                assert!(told == step.way || is_given_up || self.pause.is_none());
                self.left = left.unwrap_or(0);
                step
            }
            left => {
                self.left = left - 1;
                let way = self.trial.known().0;
                Step { way, part: 1 }
            }
        };
        let other = times[self.trial.other() as usize];
        let way = match step.way {
            Way::Reuse if !self.has_memory => self.trial.other(),
            way => way,
        };
        if way == Way::Reuse {
            self.trial.count_reuse();
        }
        let part = step.part as u64;
        let took = (times[way as usize] + other * (part - 1)) / part;
        self.now += took;
        match self.pause {
            Some(pause) => {
                self.trial.close(self.now);
                self.now += pause;
            }
            None => self.now += self.gap,
        }
        (step.way, took)
    }

    /// Makes so many copies. Returns how long they took.
    fn copies(&mut self, count: u32, times: [u64; 3]) -> u64 {
        (0..count).map(|_| self.copy(times).1).sum()
    }

    fn known(&self) -> Way {
        self.trial.known().0
    }
}

/// Copies after which each way was tried once.
const FIRST: u32 = 400;

#[test]
fn the_fastest_way_is_taken() {
    for (ways, times, fastest) in [
        (BOTH, [1200, 800, 1], Way::Stream),
        (BOTH, [800, 1200, 1], Way::Plain),
        (BOTH, [800, 800, 1], Way::Plain),
        (BOTH, [800, 780, 1], Way::Plain),
        (ALL, [1200, 800, 1000], Way::Stream),
        (ALL, [1200, 1000, 800], Way::Reuse),
        (ALL, [1200, 780, 800], Way::Stream),
        (ALL, [800, 1200, 1000], Way::Plain),
        (Ways::only(Way::Stream), [1, 800, 1], Way::Stream),
    ] {
        let mut writer = Writer::new(ways);
        writer.copies(FIRST, times);
        assert_eq!(writer.known(), fastest, "{times:?}");
    }
}

/// What is as fast is not changed for.
#[test]
fn a_way_that_is_as_fast_is_not_changed_for() {
    let mut writer = Writer::new(BOTH);
    for (plain, stream, way) in [
        (1200, 800, Way::Stream),
        (780, 800, Way::Stream),
        (800, 1200, Way::Plain),
        (800, 780, Way::Plain),
    ] {
        writer.copies(10_000, [plain, stream, 1]);
        assert_eq!(writer.known(), way, "{plain} {stream}");
    }
}

/// One message a millisecond, where a copy takes a thousandth of that.
#[test]
fn rare_messages_that_are_answered_find_the_fastest_way() {
    for (times, fastest) in [
        ([1200, 800, 1000], Way::Stream),
        ([1200, 1000, 800], Way::Reuse),
        ([800, 1000, 1200], Way::Plain),
    ] {
        let mut writer = Writer::new(ALL);
        writer.pause = Some(1_000_000);
        writer.copies(FIRST, times);
        assert_eq!(writer.known(), fastest);
    }
}

/// Their time is that between them.
#[test]
fn rare_messages_without_an_answer_decide_nothing() {
    let mut writer = Writer::new(ALL);
    writer.gap = 1_000_000;
    writer.copies(10_000, [1200, 800, 1000]);
    assert_eq!(writer.known(), Way::Plain);
}

/// A block in which little was reused says nothing of it.
#[test]
fn what_cannot_be_reused_goes_by_another_way() {
    let mut writer = Writer::new(ALL);
    writer.has_memory = false;
    for (plain, stream, way) in [
        (1200, 800, Way::Stream),
        (800, 1200, Way::Plain),
        (1200, 800, Way::Stream),
    ] {
        writer.copies(20_000, [plain, stream, 1]);
        assert_eq!((writer.known(), writer.trial.other()), (way, way));
    }
    // What was reused, and is not any more.
    let mut writer = Writer::new(ALL);
    writer.copies(FIRST, [1200, 800, 100]);
    assert_eq!(
        (writer.known(), writer.trial.other()),
        (Way::Reuse, Way::Stream)
    );
    writer.has_memory = false;
    writer.copies(10_000, [1200, 800, 100]);
    assert_eq!(writer.known(), Way::Stream);
}

/// Of a candidate that is 3, 10 and 100 times as slow no copy takes more than an eighth of that beside its own until it has shown itself, and all
/// trials together no more than a hundredth.
#[test]
fn trials_cost_little() {
    for slow in [3, 10, 100] {
        let times = [1000, slow * 1000, slow * 1000];
        let mut writer = Writer::new(ALL);
        let first = writer.copies(FIRST, times);
        let known = u64::from(FIRST) * 1000;
        // Two blocks of each candidate: at most twice the time of what the known way moves meanwhile and of four copies more, but for the last one.
        let most = 2 * 2 * (25 + 2 * 4 + slow) * 1000;
        assert!(first - known <= most, "{first} {known}");
        let count = 1_000_000;
        let took = writer.copies(count, times);
        let usual = u64::from(count) * 1000;
        assert!(took - usual <= usual / 100, "{slow}: {took}");
        assert_eq!(writer.known(), Way::Plain);
    }
}

/// A candidate that is far behind moves a part of a copy, until it has shown what it costs.
#[test]
fn what_is_far_behind_moves_a_part() {
    let times = [1000, 30_000, 1];
    let mut writer = Writer::new(BOTH);
    let slow = (0..FIRST)
        .map(|_| writer.copy(times))
        .filter(|(way, _)| *way == Way::Stream);
    let slow: Vec<u64> = slow.map(|(_, took)| took).collect();
    assert!((2..=8).contains(&slow.len()), "{slow:?}");
    assert!(slow.iter().all(|took| *took <= 5000), "{slow:?}");
}

/// Where nothing changes trials become rare, and where times change another one comes soon.
#[test]
fn a_change_of_times_is_noticed() {
    let mut writer = Writer::new(BOTH);
    writer.copies(400_000, [800, 1200, 1]);
    assert_eq!(writer.known(), Way::Plain);
    let mut copies = 0;
    while writer.known() == Way::Plain {
        writer.copies(1, [2400, 1200, 1]);
        copies += 1;
        assert!(copies < 4096, "two samples and a trial");
    }
    assert_eq!(writer.known(), Way::Stream);
}

/// Two ranks whose copies take as long do not go on trying at the same time.
#[test]
fn ranks_do_not_try_at_the_same_time() {
    let trials = |since: u64| {
        let mut writer = Writer::new(BOTH);
        writer.now = since;
        let tried = (0..40_000).filter(|_| writer.copy([1237, 1300, 1]).0 == Way::Stream);
        tried.collect::<Vec<u32>>()
    };
    let (first, second) = (trials(0), trials(77));
    assert!(first.len() >= 100 && second.len() >= 100);
    let both = first.iter().filter(|copy| second.contains(copy)).count();
    // The first trials are of the same copies: nobody knows anything by then.
    assert!(both <= first.len() / 2, "{both} of {}", first.len());
}

/// A pause in one block of each way, as where the system runs another process, decides nothing.
#[test]
fn a_block_may_be_slow() {
    let mut writer = Writer::new(BOTH);
    let (mut blocks, mut last) = (0, Way::Plain);
    for copy in 0..FIRST {
        let (way, _) = writer.copy([1200, 800, 1]);
        if way != last {
            (blocks, last) = (blocks + 1, way);
            // The first block of the candidate, and the one of the known way after it.
            if blocks <= 2 {
                writer.now += 1_000_000;
            }
        }
        assert!(blocks != 0 || copy < 100, "a trial begins");
    }
    assert_eq!(writer.known(), Way::Stream);
}

/// Every byte, and none beside them, in trials and after them.
#[test]
fn copies_are_whole() {
    const ROOM: usize = 3 * LEAST;
    let source: Vec<u8> = (0..ROOM).map(|index| (index % 251) as u8).collect();
    for ways in [Ways::PLAIN, Ways::only(Way::Stream), BOTH] {
        let writes = SharedWrites::new(ways, 256, 1024);
        for turn in 0..1200 {
            let (from, at, len) = (turn % 7, 1 + turn * 5 % 67, 250 + turn * 13 % (2 * LEAST));
            let mut target = vec![255; ROOM];
            // SAFETY: both vectors are longer than offset and length together.
            unsafe { writes.copy(source[from..].as_ptr(), target[at..].as_mut_ptr(), len) };
            assert_eq!(target[at..at + len], source[from..from + len]);
            let beside = target[..at].iter().chain(&target[at + len..]);
            assert!(beside.into_iter().all(|byte| *byte == 255));
        }
    }
}

/// Each class of lengths has a choice of its own; copies that are too short for it do not pass the caches by.
#[test]
fn lengths_are_tried_apart() {
    let writes = SharedWrites::new(ALL, 256, 1024);
    writes.count_reuse(255);
    assert_eq!(writes.timed.load(Relaxed), 0);
    let (mut source, mut target) = ([0_u8; 4096], [1_u8; 4096]);
    source[200] = 7;
    for (len, number) in [(256, 1), (1023, 1), (1024, 2), (4095, 2), (4096, 3)] {
        // SAFETY: both are as long.
        unsafe { writes.copy(source.as_ptr(), target.as_mut_ptr(), len) };
        assert_eq!(writes.timed.load(Relaxed), number, "{len}");
    }
    assert_eq!(source, target);
    // All that is tried of the shortest ones.
    for _ in 0..FIRST {
        assert_ne!(writes.next(256), Way::Stream);
        // SAFETY: as above.
        unsafe { writes.copy(source.as_ptr(), target.as_mut_ptr(), 256) };
    }
}
