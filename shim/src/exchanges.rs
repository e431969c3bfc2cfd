//! Sends and receives that are one operation, without waiting (MPI-5.0, section 3.10).
#![allow(clippy::too_many_arguments, reason = "those of the standard")]

use std::sync::{Arc, Mutex, PoisonError};

use tagwire_pml::{RequestId, SendMode};

use crate::abi::{Comm, Datatype, Request};
use crate::error::{On, Result};
use crate::ongoing::Ongoing;
use crate::p2p::{Envelope, irecv_from, isend_to};
use crate::process::Process;
use crate::raw::{In, Out, Ref, Staging};
use crate::request::{End, Pending, Requests};

/// A send and a receive under way.
struct Exchange {
    receive: Pending,
    send: Pending,
    /// How the receive ended, and the send.
    ends: Mutex<[Option<End>; 2]>,
    /// What is sent, where the receive replaces it.
    _memory: Option<Staging>,
}

impl Ongoing for Exchange {
    fn is_complete(&self, requests: &Requests) -> bool {
        requests.is_complete(&self.receive) && requests.is_complete(&self.send)
    }

    fn take(&self, requests: &Requests) -> Option<End> {
        let mut ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        for (end, part) in ends.iter_mut().zip([&self.receive, &self.send]) {
            if end.is_none() {
                *end = requests.take(part);
            }
        }
        if ends.iter().any(Option::is_none) {
            return None;
        }
        let [received, sent] = std::mem::take(&mut *ends);
        let sent = sent.and_then(|end| end.error);
        let End { status, error } = received?;
        let error = error.or(sent);
        Some(End { status, error })
    }
}

/// What is sent or received: where it is, and to whom it goes or from whom it comes.
type Half<B> = ((B, i64, Datatype), Envelope);

fn start(
    process: &Process,
    (data, to): Half<In>,
    (room, from): Half<Out>,
    memory: Option<Staging>,
    request: Ref<Request>,
) -> Result {
    let receive = irecv_from(process, room, from)?;
    let send = match isend_to(process, data, to, SendMode::Standard) {
        Ok(None | Some(RequestId::COMPLETE)) => Pending::Sent,
        Ok(Some(id)) => Pending::Send(id),
        Err(error) => {
            // Its room is the program's again once it has ended.
            if let Pending::Recv(id, _) = receive {
                let _ = process.messenger.cancel(id);
                let _ = process.messenger.wait(id, None);
            }
            return Err(error);
        }
    };
    let exchange = Exchange {
        receive,
        send,
        ends: Mutex::default(),
        _memory: memory,
    };
    let pending = Pending::Ongoing(Arc::new(exchange));
    request.set(process.requests.enter(pending, from.comm)?);
    Ok(())
}

/// `MPI_Isendrecv`.
pub fn isendrecv(
    process: &Process,
    data: In,
    count: i64,
    datatype: Datatype,
    to: i32,
    send_tag: i32,
    room: Out,
    room_count: i64,
    room_type: Datatype,
    from: i32,
    recv_tag: i32,
    comm: Comm,
    request: Ref<Request>,
) -> Result {
    let (rank, tag) = (to, send_tag);
    let send = ((data, count, datatype), Envelope { rank, tag, comm });
    let (rank, tag) = (from, recv_tag);
    let receive = ((room, room_count, room_type), Envelope { rank, tag, comm });
    start(process, send, receive, None, request)
}

/// `MPI_Isendrecv_replace`.
pub fn isendrecv_replace(
    process: &Process,
    data: Out,
    count: i64,
    datatype: Datatype,
    to: i32,
    send_tag: i32,
    from: i32,
    recv_tag: i32,
    comm: Comm,
    request: Ref<Request>,
) -> Result {
    process.comm(comm)?;
    let copied = || {
        let span = process.types.span(count, datatype)?;
        let memory = Staging::new(span.bytes);
        span.packer(data.read())?.pack(memory.bytes());
        Ok((span.bytes as i64, memory))
    };
    let (bytes, memory) = copied().map_err(|error: crate::Error| error.on(On::Comm(comm)))?;
    let packed = (In::of(memory.bytes()), bytes, Datatype::PACKED);
    let (rank, tag) = (to, send_tag);
    let send = (packed, Envelope { rank, tag, comm });
    let (rank, tag) = (from, recv_tag);
    let receive = ((data, count, datatype), Envelope { rank, tag, comm });
    start(process, send, receive, Some(memory), request)
}
