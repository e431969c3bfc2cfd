//! What a rank waits for, in words: for `SIGUSR1` and for deadlines.

use std::fmt::{self, Write};

use super::Ob1;
use super::peer::{Health, Peer};
use super::request::{Phase, Request};
use super::unexpected::Content;

/// How many lines of each list are written out.
const SHOWN: usize = 16;

impl Ob1 {
    pub(super) fn write_dump(&self, out: &mut dyn Write) -> fmt::Result {
        let core = &self.core;
        writeln!(
            out,
            "tagwire: rank {} of {} (ob1 over {}, engine {})",
            self.rank,
            self.size,
            self.rail.name(),
            core.engine.name()
        )?;
        let active = || {
            core.requests
                .iter()
                .filter(|(_, request)| request.is_active())
        };
        let receives = active().filter(|(_, request)| !request.is_send());
        let mut receives: Vec<_> = receives.map(|(_, request)| request).collect();
        receives.sort_unstable_by_key(|request| request.order);
        writeln!(out, "  receives under way: {}", receives.len())?;
        for request in receives.iter().take(SHOWN) {
            write_receive(out, request)?;
        }
        more(out, receives.len())?;
        let sends: Vec<_> = active()
            .filter(|(_, r)| r.is_send())
            .map(|(_, r)| r)
            .collect();
        writeln!(out, "  sends under way: {}", sends.len())?;
        for request in sends.iter().take(SHOWN) {
            write_send(out, request)?;
        }
        more(out, sends.len())?;
        writeln!(out, "  unexpected messages: {}", core.unexpected.len())?;
        for (_, message) in core.unexpected.iter().take(SHOWN) {
            let source = core
                .peers
                .get(message.peer)
                .map_or(u32::MAX, |peer| peer.rank.as_u32());
            let place = match message.content {
                Content::Rendezvous { .. } => "with its sender",
                _ => "here",
            };
            writeln!(
                out,
                "    from rank {source}, {:?}, {:?}, {} bytes, {place}",
                message.tag, message.context, message.length
            )?;
        }
        more(out, core.unexpected.len())?;
        writeln!(
            out,
            "  budget left: {} envelopes, {} bytes of payload; chores: {}",
            core.budget.left().envelopes,
            core.budget.left().bytes,
            core.chores.len()
        )?;
        writeln!(out, "  peers in contact: {}", core.peers.len())?;
        for (_, peer) in core.peers.iter().take(SHOWN) {
            write_peer(out, peer)?;
        }
        more(out, core.peers.len())?;
        self.rail.describe(out);
        Ok(())
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
    let written = if request.is_send() {
        write_send(&mut line, request)
    } else {
        write_receive(&mut line, request)
    };
    debug_assert!(written.is_ok(), "a string takes everything");
    line.trim().to_owned()
}

fn write_receive(out: &mut dyn Write, request: &Request) -> fmt::Result {
    let state = match request.phase {
        Phase::Posted => "not matched",
        Phase::Streaming => "matched, packets are arriving",
        Phase::ClaimPending => "matched, the transport was busy",
        Phase::Claimed => "matched, being copied",
        _ => "matched, fragments are arriving",
    };
    write!(
        out,
        "    receive from {:?}, {:?}, {:?}, room for {} bytes: {state}",
        request.from,
        request.tag,
        request.context,
        request.capacity()
    )?;
    if !matches!(request.phase, Phase::Posted) {
        write!(
            out,
            " from rank {} ({} bytes)",
            request.status.source, request.status.length
        )?;
    }
    writeln!(out)
}

fn write_send(out: &mut dyn Write, request: &Request) -> fmt::Result {
    let state = match request.phase {
        Phase::Queued => "waits for credit or room",
        Phase::Leaving => "its bytes are leaving",
        Phase::Offered => "envelope sent, not fetched",
        Phase::AwaitMatch => "envelope sent, not matched",
        _ => "fragments are leaving",
    };
    writeln!(
        out,
        "    {:?} send to rank {}, {:?}, {:?}, {} bytes: {state}",
        request.mode,
        request.status.source,
        request.status.tag,
        request.context,
        request.send_buffer().len()
    )
}

fn write_peer(out: &mut dyn Write, peer: &Peer) -> fmt::Result {
    let health = match peer.health {
        Health::Alive if peer.account.starved => {
            "alive, may hold envelopes back for want of credit"
        }
        Health::Alive => "alive",
        Health::Left => "has left",
        Health::Failed => "failed",
        Health::Broken => "broke the protocol",
        Health::Unreachable => "cannot be reached",
    };
    writeln!(
        out,
        "    rank {}: {health}; {} packets sent, {} received; may send {} envelopes and {} bytes, may be sent {} and {}; {} sends wait",
        peer.rank,
        peer.next_out.as_u32(),
        peer.next_in.as_u32(),
        peer.credit.envelopes,
        peer.credit.bytes,
        peer.account.granted.envelopes,
        peer.account.granted.bytes,
        peer.queue.len()
    )
}
