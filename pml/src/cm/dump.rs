//! What a rank waits for, in words: for `SIGUSR1` and for deadlines.

use std::fmt::{self, Write};

use super::Cm;
use super::request::{Phase, Request};
use crate::dumps::ContextNames;
use crate::types::Failure;

/// How many lines of each list are written out.
const SHOWN: usize = 16;

impl Cm {
    pub(super) fn write_dump(&self, names: &ContextNames, out: &mut dyn Write) -> fmt::Result {
        let core = &self.core;
        writeln!(
            out,
            "tagwire: rank {} of {} (cm over {})",
            self.core.lane.rank,
            self.core.lane.size,
            self.driver.rail.name()
        )?;
        let (mut receives, mut sends) = (Vec::new(), Vec::new());
        for (_, request) in core.requests.iter().filter(|(_, r)| r.is_active()) {
            if request.is_send {
                sends.push(request);
            } else {
                receives.push(request);
            }
        }
        receives.sort_unstable_by_key(|request| request.order);
        writeln!(out, "  receives under way: {}", receives.len())?;
        for request in receives.iter().take(SHOWN) {
            write_receive(out, names, request)?;
        }
        more(out, receives.len())?;
        writeln!(out, "  sends under way: {}", sends.len())?;
        for request in sends.iter().take(SHOWN) {
            write_send(out, names, request)?;
        }
        more(out, sends.len())?;
        self.write_unexpected(names, out)?;
        writeln!(out, "  peers in contact: {}", core.lane.peers.len())?;
        for (_, peer) in core.lane.peers.iter().take(SHOWN) {
            let health = match peer.lost {
                None => "alive",
                Some(Failure::PeerLeft(_)) => "has left",
                Some(Failure::Protocol(_)) => "broke the protocol",
                Some(Failure::Unreachable(_)) => "cannot be reached",
                Some(_) => "failed",
            };
            let (rank, waiting) = (peer.rank, peer.queue.len());
            writeln!(out, "    rank {rank}: {health}; {waiting} sends wait")?;
        }
        more(out, core.lane.peers.len())?;
        self.driver.rail.describe(out);
        Ok(())
    }

    fn write_unexpected(&self, names: &ContextNames, out: &mut dyn Write) -> fmt::Result {
        let levels = self.driver.rail.levels();
        writeln!(
            out,
            "  unexpected messages: {} ({} bytes here); {} of ours are held back; {} claimed",
            levels.unexpected,
            levels.unexpected_bytes,
            levels.held,
            self.core.claimed.count()
        )?;
        let (mut count, mut result) = (0, Ok(()));
        self.driver.rail.visit_unexpected(&mut |envelope| {
            count += 1;
            if count > SHOWN || result.is_err() {
                return;
            }
            let (source, length) = (envelope.source, envelope.length);
            result = match self.core.layout.read(envelope) {
                Some((tag, context)) => writeln!(
                    out,
                    "    from rank {source}, {tag:?}, {}, {length} bytes",
                    names.own(context)
                ),
                None => writeln!(out, "    from rank {source}, a reserved tag"),
            };
        });
        result?;
        more(out, count)
    }
}

fn more(out: &mut dyn Write, count: usize) -> fmt::Result {
    if count > SHOWN {
        writeln!(out, "    ... and {} more", count - SHOWN)
    } else {
        Ok(())
    }
}

/// A request in one line.
pub(super) fn describe(request: &Request) -> String {
    let mut line = String::new();
    let written = if request.is_send {
        write_send(&mut line, &ContextNames::default(), request)
    } else {
        write_receive(&mut line, &ContextNames::default(), request)
    };
    debug_assert!(written.is_ok(), "a string takes everything");
    line.trim().to_owned()
}

fn write_receive(out: &mut dyn Write, names: &ContextNames, request: &Request) -> fmt::Result {
    let state = match (request.phase, request.claim) {
        (Phase::Queued, _) => "waits for room",
        (_, Some(_)) => "claimed, being copied",
        _ => "with the transport",
    };
    writeln!(
        out,
        "    receive from {:?}, {:?}, {}, room for {} bytes: {state}",
        request.from,
        request.tag,
        names.own(request.context),
        request.capacity
    )
}

fn write_send(out: &mut dyn Write, names: &ContextNames, request: &Request) -> fmt::Result {
    let state = match request.phase {
        Phase::Queued => "waits for room",
        _ => "with the transport",
    };
    writeln!(
        out,
        "    {:?} send to rank {}, {:?}, {}, {} bytes: {state}",
        request.mode,
        request.status.source,
        request.status.tag,
        names.of_peer(request.status.source, request.context),
        request.status.length
    )
}
