//! What a stream of short messages takes at least between two cores: windows of 64 messages, each of three words and a stamp, in lines of a
//! ring that both map, and a word back for each window. One message or two to a line, with and without lines that are asked for ahead:
//! the reader fetches, and the writer takes over. Millions of messages a second, the median of several runs with the extremes.
//!
//! ```text
//! cargo run --release -p tagwire-bench-loops --example stream [CORE CORE]
//! ```

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::time::Instant;

use tagwire_base::prefetch;

/// Lines of the ring.
const LINES: usize = 512;
/// Words of a line.
const WORDS: usize = 8;
/// Words of a message.
const MESSAGE: usize = 4;
const WINDOW: u64 = 64;
const WINDOWS: u64 = 20_000;
const RUNS: usize = 5;
/// Lines are asked for so far ahead.
const AHEAD: usize = 8;

#[repr(align(64))]
struct Line([AtomicU64; WORDS]);

#[repr(align(128))]
#[derive(Default)]
struct Word(AtomicU64);

/// What the two threads share.
struct Stream {
    lines: Vec<Line>,
    /// The last window that was read.
    read: Word,
}

/// How messages lie in lines.
#[derive(Debug, Clone, Copy)]
struct Way {
    /// Messages of a line: 1 or 2.
    per_line: u64,
    reader_fetches: bool,
    writer_takes_over: bool,
}

impl Stream {
    fn new() -> Self {
        let line = || Line(std::array::from_fn(|_| AtomicU64::new(0)));
        Self {
            lines: (0..LINES).map(|_| line()).collect(),
            read: Word::default(),
        }
    }

    /// Returns the words of a message, from 0, and the line behind it that is asked for.
    fn place(&self, way: Way, number: u64) -> (&[AtomicU64], &Line) {
        let (line, half) = (number / way.per_line, number % way.per_line);
        let line = line as usize;
        let words = &self.lines[line % LINES].0[half as usize * MESSAGE..][..MESSAGE];
        (words, &self.lines[(line + AHEAD) % LINES])
    }

    fn write(&self, way: Way) {
        for window in 0..WINDOWS {
            for number in window * WINDOW..(window + 1) * WINDOW {
                let (words, ahead) = self.place(way, number);
                words[1].store(number, Relaxed);
                words[2].store(7, Relaxed);
                words[3].store(number, Relaxed);
                words[0].store(number + 1, Release);
                if way.writer_takes_over {
                    prefetch::for_write(ahead);
                }
            }
            while self.read.0.load(Acquire) <= window {
                std::hint::spin_loop();
            }
        }
    }

    fn read(&self, way: Way) {
        for window in 0..WINDOWS {
            for number in window * WINDOW..(window + 1) * WINDOW {
                let (words, ahead) = self.place(way, number);
                while words[0].load(Acquire) != number + 1 {
                    std::hint::spin_loop();
                }
                if way.reader_fetches {
                    prefetch::for_read(ahead);
                }
                black_box((words[1].load(Relaxed), words[2].load(Relaxed)));
                assert_eq!(words[3].load(Relaxed), number);
            }
            self.read.0.store(window + 1, Release);
        }
    }
}

/// Returns millions of messages a second.
fn run(way: Way, cores: [u32; 2]) -> f64 {
    let stream = Stream::new();
    let bind = |core| tagwire_base::topology::bind_to(core).expect("a core that may be used");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            bind(cores[1]);
            stream.read(way);
        });
        bind(cores[0]);
        let begun = Instant::now();
        stream.write(way);
        (WINDOWS * WINDOW) as f64 / begun.elapsed().as_secs_f64() / 1e6
    })
}

fn main() {
    let cores = tagwire_bench_loops::cores();
    println!("messages of a line, reader fetches, writer takes over: M messages/s");
    for per_line in [1, 2] {
        for (reader_fetches, writer_takes_over) in
            [(false, false), (true, false), (false, true), (true, true)]
        {
            let way = Way {
                per_line,
                reader_fetches,
                writer_takes_over,
            };
            let mut rates: [f64; RUNS] = std::array::from_fn(|_| run(way, cores));
            rates.sort_unstable_by(f64::total_cmp);
            let [least, .., most] = rates;
            println!(
                "{per_line} {reader_fetches:>5} {writer_takes_over:>5} {:>7.1} ({least:.1}..{most:.1})",
                rates[RUNS / 2]
            );
        }
    }
}
