//! Sends and receives that are one operation, without waiting (MPI-5.0, section 3.10).
#![allow(clippy::too_many_arguments, reason = "those of the standard")]

use std::fmt;
use std::sync::Arc;

use tagwire_coll::Members;
use tagwire_pml::{Messenger, RequestId, Status as Ended};

use crate::abi::{Comm, Request, Status};
use crate::call::Envelope;
use crate::call::p2p::{irecv_from, send_or_revoke};
use crate::error::{On, Result};
use crate::lock::Lock;
use crate::object::pending::{End, Pending, PendingOperation};
use crate::process::Process;
use crate::raw::{Elements, In, Out, Ref, StagingBuffer};

/// A send and a receive under way.
struct Exchange {
    messenger: Arc<Messenger>,
    /// With the members, as [`Pending::Recv`]; `None` where nothing is received.
    receive: Option<(RequestId, Option<Arc<Members>>)>,
    /// `None` where it was complete at once.
    send: Option<RequestId>,
    /// How the receive ended, and the send.
    ends: Lock<[Option<End>; 2]>,
    /// What is sent, where the receive replaces it.
    _memory: Option<StagingBuffer>,
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Exchange({:?})", self.send)
    }
}

impl Exchange {
    /// Takes how a message ended, without progress.
    fn taken(&self, id: RequestId, end: impl Fn(&Ended) -> End) -> Option<End> {
        match self.messenger.take(id) {
            Ok(ended) => ended.as_ref().map(end),
            Err(error) => Some(End::of(Err(error.into()))),
        }
    }
}

impl PendingOperation for Exchange {
    fn is_complete(&self) -> bool {
        // One that is not known any more was taken.
        let has_ended = |id| self.messenger.is_complete(id).unwrap_or(true);
        let receive = self.receive.as_ref().map(|(id, _)| *id);
        [receive, self.send].into_iter().flatten().all(has_ended)
    }

    fn take(&self) -> Option<End> {
        if !self.is_complete() {
            return None;
        }
        let mut ends = self.ends.lock();
        let [received, sent] = &mut *ends;
        if received.is_none() {
            *received = match &self.receive {
                None => Some(End::good(Status::NO_PROC)),
                Some((id, members)) => {
                    self.taken(*id, |ended| End::of_recv(ended, members.as_deref()))
                }
            };
        }
        if sent.is_none() {
            *sent = match self.send {
                None => Some(End::EMPTY),
                Some(id) => self.taken(id, End::of_send),
            };
        }
        let (received, sent) = (received.take()?, sent.take()?);
        Some(End {
            status: received.status,
            error: received.error.or(sent.error),
        })
    }
}

/// Starts the exchange of `send`, of which `memory` is kept, and `recv`.
fn start(
    process: &Process,
    send: Elements<In>,
    to: Envelope,
    memory: Option<StagingBuffer>,
    recv: Elements<Out>,
    from: Envelope,
) -> Result<Pending> {
    let pending = irecv_from(process, recv, from)?;
    let sent = send_or_revoke(process, send, to, &pending)?;
    let receive = match pending {
        Pending::Recv(id, members) => Some((id, members)),
        _ => None,
    };
    let exchange = Exchange {
        messenger: Arc::clone(&process.messenger),
        receive,
        send: sent.filter(|id| *id != RequestId::COMPLETE),
        ends: Lock::default(),
        _memory: memory,
    };
    Ok(Pending::Operation(Arc::new(exchange)))
}

/// `MPI_Isendrecv`.
pub fn isendrecv(
    process: &Process,
    send: Elements<In>,
    to: i32,
    send_tag: i32,
    recv: Elements<Out>,
    from: i32,
    recv_tag: i32,
    comm: Comm,
    request: Ref<Request>,
) -> Result {
    let envelope = |rank, tag| Envelope { rank, tag, comm };
    let (to, from) = (envelope(to, send_tag), envelope(from, recv_tag));
    let pending = start(process, send, to, None, recv, from)?;
    request.set(process.requests.enter(pending, comm)?);
    Ok(())
}

/// `MPI_Isendrecv_replace`.
pub fn isendrecv_replace(
    process: &Process,
    data: Elements<Out>,
    to: i32,
    send_tag: i32,
    from: i32,
    recv_tag: i32,
    comm: Comm,
    request: Ref<Request>,
) -> Result {
    process.comm(comm)?;
    let copied = || {
        let span = process.types.span(data.count, data.datatype)?;
        let memory = StagingBuffer::new(span.bytes);
        span.pack(data.address.read(), memory.address())?;
        Ok(memory)
    };
    let memory = copied().map_err(|error: crate::Error| error.on(On::Comm(comm)))?;
    let packed = memory.packed();
    let envelope = |rank, tag| Envelope { rank, tag, comm };
    let (to, from) = (envelope(to, send_tag), envelope(from, recv_tag));
    let pending = start(process, packed, to, Some(memory), data, from)?;
    request.set(process.requests.enter(pending, comm)?);
    Ok(())
}
