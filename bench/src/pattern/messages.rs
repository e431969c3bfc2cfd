//! Parts as messages.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::exchange::{Edges, Exchange};
use crate::error::Result;
use crate::port::{Port, tags};

/// Each part is sent and received by a blocking call of the thread that has it.
pub(crate) struct Calls<'p, P> {
    port: &'p P,
    edges: Edges,
}

impl<'p, P: Port> Calls<'p, P> {
    pub(crate) fn new(port: &'p P, edges: Edges) -> Self {
        Self { port, edges }
    }
}

impl<P: Port + Sync> Exchange for Calls<'_, P> {
    fn start(&self) -> Result<()> {
        Ok(())
    }

    fn ready(&self, edge: usize, part: u32) -> Result<()> {
        let edge = &self.edges.outs()[edge];
        let (tag, _) = tags::thread(edge.tag(part));
        self.port
            .send(self.edges.outgoing(edge, part), edge.peer, tag)
    }

    fn arrive(&self, edge: usize, part: u32) -> Result<()> {
        let edge = &self.edges.ins()[edge];
        let (tag, _) = tags::thread(edge.tag(part));
        self.port
            .recv(self.edges.incoming(edge, part), edge.peer, tag)
    }

    fn finish_out(&self, _: usize) -> Result<()> {
        Ok(())
    }

    fn finish_in(&self, _: usize) -> Result<()> {
        Ok(())
    }

    fn finish(&self) -> Result<()> {
        Ok(())
    }
}

/// Receives of all parts are posted at the start, and sends are waited for at the end.
pub(crate) struct Posted<'p, P: Port> {
    port: &'p P,
    edges: Edges,
    /// Of each edge.
    sends: Vec<Mutex<Vec<P::Request>>>,
    /// Of each edge, by part; none once it was waited for.
    receives: Vec<Mutex<Vec<Option<P::Request>>>>,
}

impl<'p, P: Port> Posted<'p, P> {
    pub(crate) fn new(port: &'p P, edges: Edges) -> Self {
        Self {
            port,
            sends: edges.outs().iter().map(|_| Mutex::default()).collect(),
            receives: edges.ins().iter().map(|_| Mutex::default()).collect(),
            edges,
        }
    }
}

impl<P> Exchange for Posted<'_, P>
where
    P: Port + Sync,
    P::Request: Send,
{
    fn start(&self) -> Result<()> {
        for (edge, receives) in self.edges.ins().iter().zip(&self.receives) {
            let mut receives = lock(receives);
            receives.clear();
            for part in 0..edge.parts {
                let (tag, _) = tags::thread(edge.tag(part));
                let room = self.edges.incoming(edge, part);
                receives.push(Some(self.port.irecv(room, edge.peer, tag)?));
            }
        }
        Ok(())
    }

    fn ready(&self, edge: usize, part: u32) -> Result<()> {
        let sends = &self.sends[edge];
        let edge = &self.edges.outs()[edge];
        let (tag, _) = tags::thread(edge.tag(part));
        let data = self.edges.outgoing(edge, part);
        let send = self.port.isend(data, edge.peer, tag)?;
        lock(sends).push(send);
        Ok(())
    }

    fn arrive(&self, edge: usize, part: u32) -> Result<()> {
        let receive = lock(&self.receives[edge])[part as usize].take();
        let mut one: Vec<P::Request> = receive.into_iter().collect();
        self.port.wait_all(&mut one)
    }

    fn finish_out(&self, edge: usize) -> Result<()> {
        let mut sends = std::mem::take(&mut *lock(&self.sends[edge]));
        self.port.wait_all(&mut sends)
    }

    fn finish_in(&self, edge: usize) -> Result<()> {
        let receives = std::mem::take(&mut *lock(&self.receives[edge]));
        let mut left: Vec<P::Request> = receives.into_iter().flatten().collect();
        self.port.wait_all(&mut left)
    }

    fn finish(&self) -> Result<()> {
        let mut left = Vec::new();
        for receives in &self.receives {
            left.extend(lock(receives).drain(..).flatten());
        }
        for sends in &self.sends {
            left.append(&mut lock(sends));
        }
        self.port.wait_all(&mut left)
    }
}

/// A thread that panicked has ended the test, so that what it left behind does not matter.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
