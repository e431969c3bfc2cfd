//! What a rank waits for, in words: for `SIGUSR1` and for deadlines.

use std::fmt::{self, Write};

use tagwire_base::Rank;
use tagwire_transport::ByteTransport;

use super::core::Core;
use super::peer::{Health, Peer};
use super::request::Request;
use super::unexpected::Content;
use crate::dumps::ContextNames;

/// How many lines of each list are written out.
const SHOWN: usize = 16;

/// Writes what the rank of this core, of a job of `size`, waits for over transport `rail`.
pub(super) fn write(
    core: &Core,
    (rank, size): (Rank, u32),
    rail: &dyn ByteTransport,
    (names, out): (&ContextNames, &mut dyn Write),
) -> fmt::Result {
    writeln!(
        out,
        "tagwire: rank {rank} of {size} (ob1 over {}, engine {})",
        rail.name(),
        core.matcher.name()
    )?;
    let active = || {
        let requests = core.requests.iter().map(|(_, request)| request);
        requests.filter(|request| request.is_active())
    };
    let mut receives: Vec<_> = active().filter(|request| !request.is_send()).collect();
    receives.sort_unstable_by_key(|request| request.place().map_or(0, |place| place.order));
    writeln!(out, "  receives under way: {}", receives.len())?;
    for request in receives.iter().take(SHOWN) {
        write_receive(out, names, request)?;
    }
    more(out, receives.len())?;
    let sends: Vec<_> = active().filter(|request| request.is_send()).collect();
    writeln!(out, "  sends under way: {}", sends.len())?;
    for request in sends.iter().take(SHOWN) {
        write_send(out, names, request)?;
    }
    more(out, sends.len())?;
    writeln!(out, "  unexpected messages: {}", core.matcher.len())?;
    for message in core.matcher.messages().take(SHOWN) {
        let source = core
            .lane
            .peers
            .get(message.peer)
            .map_or(u32::MAX, |peer| peer.rank.as_u32());
        let place = match message.content {
            Content::Announced(_) => "with its sender",
            _ => "here",
        };
        writeln!(
            out,
            "    from rank {source}, {:?}, {}, {} bytes, {place}",
            message.tag,
            names.own(message.context),
            message.length
        )?;
    }
    more(out, core.matcher.len())?;
    writeln!(
        out,
        "  budget left: {} envelopes, {} bytes of payload; pending operations: {}",
        core.budget.left().envelopes,
        core.budget.left().bytes,
        core.pending.len()
    )?;
    writeln!(out, "  peers in contact: {}", core.lane.peers.len())?;
    for (_, peer) in core.lane.peers.iter().take(SHOWN) {
        write_peer(out, peer)?;
    }
    more(out, core.lane.peers.len())?;
    rail.describe(out);
    Ok(())
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
        write_send(&mut line, &ContextNames::default(), request)
    } else {
        write_receive(&mut line, &ContextNames::default(), request)
    };
    debug_assert!(written.is_ok(), "a string takes everything");
    line.trim().to_owned()
}

fn write_receive(out: &mut dyn Write, names: &ContextNames, request: &Request) -> fmt::Result {
    let (common, state) = (&request.common, request.state.describe());
    write!(
        out,
        "    receive from {:?}, {:?}, {}, room for {} bytes: ",
        common.from,
        common.tag,
        names.own(common.context),
        common.capacity()
    )?;
    match request.place() {
        Some(_) => writeln!(out, "{state}"),
        None => writeln!(
            out,
            "matched, {state} from rank {} ({} bytes)",
            common.status.source, common.status.length
        ),
    }
}

fn write_send(out: &mut dyn Write, names: &ContextNames, request: &Request) -> fmt::Result {
    let common = &request.common;
    writeln!(
        out,
        "    {:?} send to rank {}, {:?}, {}, {} bytes: {}",
        common.mode,
        common.status.source,
        common.status.tag,
        names.of_peer(common.status.source, common.context),
        common.send_buffer().len(),
        request.state.describe()
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
