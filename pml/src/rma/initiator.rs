//! The accesses of a rank, from their start to their end.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use tagwire_transport::{Capabilities, Payload, Post};

use super::access::{Access, End, Fault, Remote, Towards, Way, What};
use super::atomic::Atomic;
use super::owner::Regions;
use crate::error::{Error, Result};
use crate::packet::{ControlHeader, Kind};
use crate::peers::PeerIndex;
use crate::service::{Tokens, Wire, Wrong};
use crate::slab::{Handle, Slab};
use crate::types::Failure;

/// The regions of a rank, and its accesses to those of others.
#[derive(Debug)]
pub struct Rma {
    pub(super) tokens: Tokens,
    pub(crate) regions: Regions,
    pub(super) accesses: Slab<Access>,
    /// Accesses that can go on.
    pub(super) ready: VecDeque<Handle>,
    /// What is under way to each peer.
    pub(super) towards: HashMap<PeerIndex, Towards>,
}

impl Rma {
    /// Starts an access of `what` from `offset` on.
    ///
    /// # Errors
    /// [`Error::OutsideRegion`] when not all of it lies in the region, or a word is not aligned.
    pub(crate) fn start(
        &mut self,
        target: &Arc<Remote>,
        offset: u64,
        what: What,
        wire: &mut Wire<'_>,
    ) -> Result<Handle> {
        let len = what.len();
        let length = target.key.length;
        let is_inside = offset <= length && len <= length - offset;
        let address = target.key.address.wrapping_add(offset);
        let is_aligned = !matches!(what, What::Atomic(_)) || address.is_multiple_of(len);
        if !is_inside || !is_aligned {
            return Err(Error::OutsideRegion {
                rank: target.rank,
                offset,
                len,
                length,
            });
        }
        let has = |capability| target.capabilities.contains(capability);
        let is_by_transport = len <= target.longest
            && match what {
                What::Put(_) => has(Capabilities::PUT),
                What::Get(_) => has(Capabilities::GET),
                // Who has none says so.
                What::Atomic(atomic) => matches!(atomic, Atomic::Sum(_)) && has(Capabilities::PUT),
                What::Flush => true,
            };
        let handle = self.accesses.insert(Access {
            target: Arc::clone(target),
            offset,
            what,
            way: match is_by_transport {
                true => Way::Transport,
                false => Way::Packets { asked: 0, done: 0 },
            },
            end: None,
            is_kept: false,
            lost: None,
        });
        self.towards.entry(target.peer).or_default().under_way += 1;
        match wire.peers.is_alive(target.peer) {
            true => drop(self.advance(handle, wire)),
            false => self.end(handle, Err(Fault::Failed(Failure::PeerFailed(target.rank)))),
        }
        Ok(handle)
    }

    /// Leaves the end of an access to who takes it: a flush does not.
    pub(crate) fn keep(&mut self, handle: Handle) {
        if let Some(access) = self.accesses.get_mut(handle) {
            access.is_kept = true;
        }
    }

    /// Gives the transport what it takes of an access. Returns whether that was anything.
    pub(super) fn advance(&mut self, handle: Handle, wire: &mut Wire<'_>) -> bool {
        let Some(access) = self
            .accesses
            .get_mut(handle)
            .filter(|one| one.end.is_none())
        else {
            return false;
        };
        if access.way == Way::Transport {
            match access.post(self.tokens.of(handle), wire) {
                Post::Posted => {
                    access.way = Way::WithTransport;
                    if matches!(access.what, What::Put(_)) {
                        let towards = self.towards.entry(access.target.peer);
                        towards.or_default().unflushed = true;
                    }
                    return true;
                }
                Post::Busy => {
                    self.ready.push_back(handle);
                    return false;
                }
                Post::Gone => {
                    let failure = access.failure();
                    self.end(handle, Err(Fault::Failed(failure)));
                    return true;
                }
                Post::Unsupported if access.go_by_packets() => {}
                Post::Unsupported => {
                    self.end(handle, Ok(0));
                    return true;
                }
            }
        }
        access.ask(handle, wire.out)
    }

    /// The owner says something of an access.
    pub(super) fn replied(
        &mut self,
        from: PeerIndex,
        header: ControlHeader,
        payload: Payload<'_>,
    ) -> Result<(), Wrong> {
        let handle = header.handle;
        let Some(access) = self
            .accesses
            .get_mut(handle)
            .filter(|one| one.end.is_none())
        else {
            // It has ended, with its peer.
            return Ok(());
        };
        if access.target.peer != from {
            return Err("a reply to an access to another's memory");
        }
        let Way::Packets { asked, done } = &mut access.way else {
            return Err("a reply to an access that is with the transport");
        };
        let len = access.what.len();
        let moved = match (header.kind, &mut access.what) {
            (Kind::RMA_REFUSED, _) => {
                self.end(handle, Err(Fault::Refused));
                return Ok(());
            }
            (Kind::RMA_VALUE, What::Atomic(_)) => {
                self.end(handle, Ok(header.argument));
                return Ok(());
            }
            (Kind::RMA_DONE, What::Put(_)) => header.argument,
            (Kind::RMA_DATA, What::Get(room)) => {
                let place = header.argument.wrapping_sub(access.offset);
                let moved = payload.len() as u64;
                if place > *asked || moved > *asked - place {
                    return Err("bytes that were not asked for");
                }
                room.write(place as usize, payload);
                moved
            }
            _ => return Err("a reply that fits no access"),
        };
        if moved > *asked - *done {
            return Err("more than was asked for");
        }
        *done += moved;
        match *done == len {
            true => self.end(handle, Ok(0)),
            false => self.ready.push_back(handle),
        }
        Ok(())
    }

    /// Returns whether an access has ended.
    pub(crate) fn has_ended(&self, handle: Handle) -> bool {
        let access = self.accesses.get(handle);
        access.is_none_or(|access| access.end.is_some())
    }

    /// Takes the end of an access, if it has come.
    ///
    /// # Errors
    /// Why it did not work; [`Error::StaleRequest`] when its end was taken, or flushed, before.
    pub(crate) fn take(&mut self, handle: Handle) -> Result<Option<u64>> {
        let access = self.accesses.get(handle).ok_or(Error::StaleRequest)?;
        let (end, rank) = (access.end, access.target.rank);
        if end.is_some() {
            self.accesses.remove(handle);
        }
        end.map(|end| end.map_err(|fault| fault.error(rank)))
            .transpose()
    }

    /// Moves a flush of all accesses to the owner of `target` on. Returns whether all of them have ended, and what was put is
    /// visible; the handles of those that are not kept are stale then. The transport is asked to flush as soon as it has all puts, which may be under way.
    ///
    /// # Errors
    /// Why the first of them did not work.
    pub(crate) fn flush(&mut self, target: &Arc<Remote>, wire: &mut Wire<'_>) -> Result<bool> {
        let mut ready = self.ready.iter().filter_map(|one| self.accesses.get(*one));
        let is_complete = !ready.any(|one| one.target.peer == target.peer && one.is_posted_later());
        let Some(towards) = self.towards.get_mut(&target.peer) else {
            return Ok(true);
        };
        let flushes = is_complete && std::mem::take(&mut towards.unflushed);
        if flushes && towards.fault.is_none() {
            self.start(target, 0, What::Flush, wire)?;
            return self.flush(target, wire);
        }
        if towards.under_way > 0 {
            return Ok(false);
        }
        let fault = towards.fault.take();
        let ended = self.accesses.iter();
        let ended =
            ended.filter(|(_, access)| access.target.peer == target.peer && !access.is_kept);
        let ended: Vec<Handle> = ended.map(|(handle, _)| handle).collect();
        for handle in ended {
            self.accesses.remove(handle);
        }
        fault.map_or(Ok(true), |fault| Err(fault.error(target.rank)))
    }

    /// Notes the end of an access.
    pub(super) fn end(&mut self, handle: Handle, end: End) {
        let Some(access) = self.accesses.get_mut(handle) else {
            return;
        };
        debug_assert!(access.end.is_none(), "an access ends once");
        access.end = Some(end);
        let towards = self.towards.entry(access.target.peer).or_default();
        towards.note(end);
    }
}
