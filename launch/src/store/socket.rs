//! The socket between ranks and store: a stream in the abstract namespace of local sockets,
//! which has no file to leave behind however its owner ends.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::{Errno, Result};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
    recvmsg, sendmsg,
};

/// How many descriptors one message may bring; more are refused.
const MAX_DESCRIPTORS: usize = 4;

fn stream(flags: SocketFlags) -> Result<OwnedFd> {
    let flags = flags | SocketFlags::CLOEXEC;
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}

/// A listening socket named `name`.
pub(super) fn listen(name: &str) -> Result<OwnedFd> {
    let socket = stream(SocketFlags::NONBLOCK)?;
    rustix::net::bind(
        &socket,
        &SocketAddrUnix::new_abstract_name(name.as_bytes())?,
    )?;
    rustix::net::listen(&socket, 4096)?;
    Ok(socket)
}

/// A connection to the socket named `name`.
pub(super) fn connect(name: &str) -> Result<OwnedFd> {
    let socket = stream(SocketFlags::empty())?;
    let address = SocketAddrUnix::new_abstract_name(name.as_bytes())?;
    rustix::io::retry_on_intr(|| rustix::net::connect(&socket, &address))?;
    Ok(socket)
}

/// The next connection, if one waits.
pub(super) fn accept(listener: &OwnedFd) -> Result<Option<OwnedFd>> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    match rustix::net::accept_with(listener, flags) {
        Ok(socket) => Ok(Some(socket)),
        Err(Errno::AGAIN | Errno::CONNABORTED | Errno::INTR) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether the other end belongs to the user that this process runs as.
pub(super) fn is_own_user(socket: &OwnedFd) -> bool {
    rustix::net::sockopt::socket_peercred(socket)
        .is_ok_and(|peer| peer.uid == rustix::process::geteuid())
}

/// Sends what fits of `bytes`, `descriptor` with the first of them, without blocking.
pub(super) fn send(
    socket: &OwnedFd,
    bytes: &[u8],
    descriptor: Option<BorrowedFd<'_>>,
) -> Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors: Vec<BorrowedFd<'_>> = descriptor.into_iter().collect();
    if !descriptors.is_empty() {
        // The space was made for one descriptor, so it fits.
        control.push(SendAncillaryMessage::ScmRights(&descriptors));
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    rustix::io::retry_on_intr(|| {
        sendmsg(socket.as_fd(), &[IoSlice::new(bytes)], &mut control, flags)
    })
}

/// Receives what is there, without blocking: 0 bytes at the stream's end.
pub(super) fn receive(
    socket: &OwnedFd,
    buffer: &mut [u8],
    descriptors: &mut impl Extend<OwnedFd>,
) -> Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let received = rustix::io::retry_on_intr(|| {
        recvmsg(
            socket.as_fd(),
            &mut [IoSliceMut::new(buffer)],
            &mut control,
            flags,
        )
    })?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(brought) = message {
            descriptors.extend(brought);
        }
    }
    if received.flags.contains(ReturnFlags::CTRUNC) {
        return Err(Errno::MSGSIZE);
    }
    Ok(received.bytes)
}
