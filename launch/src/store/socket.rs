//! The socket between ranks and store: a stream in the abstract namespace of local sockets,
//! which has no file to leave behind however its owner ends; or TCP, between machines.
#![allow(unsafe_code)]

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::io::Result;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
    recvmsg, sendmsg,
};

/// How many descriptors one message may bring; more are refused.
pub(super) const MAX_DESCRIPTORS: usize = 4;

/// What the name of a store begins with that is reached by TCP.
pub(super) const TCP: &str = "tcp:";

/// How long the other machine may be silent before it is asked whether it is there, and between
/// the questions.
const PROBE_AFTER: Duration = Duration::from_secs(1);
/// Probes without a reply after which it is given up.
const PROBES: u32 = 3;
/// How long bytes may lie unacknowledged, in milliseconds.
const GIVE_UP_MS: u32 = 4000;
/// How long a connection may take to be made.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The shortest time that the system takes for a limit.
const SHORTEST: Duration = Duration::from_millis(1);

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

/// A socket that listens at `address`, and where that came to be: port 0 is any that is free.
pub(super) fn listen_tcp(address: &str) -> std::io::Result<(OwnedFd, SocketAddr)> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let place = listener.local_addr()?;
    Ok((listener.into(), place))
}

/// Connects to `HOST:PORT` of another machine, `within` this time, of which 5 s are taken at most; the connection ends
/// soon after the way to it has.
///
/// # Errors
/// Those of the last of the host's addresses.
pub fn connect_tcp(address: &str, within: Duration) -> std::io::Result<OwnedFd> {
    let limit = within.clamp(SHORTEST, CONNECT_TIMEOUT);
    let mut last = None;
    for place in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&place, limit) {
            Ok(stream) => {
                let socket = OwnedFd::from(stream);
                watch_tcp(&socket)?;
                return Ok(socket);
            }
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| std::io::ErrorKind::NotFound.into()))
}

/// Lets a connection between machines end soon after the way between them has.
///
/// # Errors
/// When the socket is none of TCP.
pub fn watch_tcp(socket: impl AsFd) -> Result<()> {
    let socket = socket.as_fd();
    use rustix::net::sockopt;
    sockopt::set_tcp_nodelay(socket, true)?;
    sockopt::set_tcp_keepidle(socket, PROBE_AFTER)?;
    sockopt::set_tcp_keepintvl(socket, PROBE_AFTER)?;
    sockopt::set_tcp_keepcnt(socket, PROBES)?;
    sockopt::set_tcp_user_timeout(socket, GIVE_UP_MS)?;
    sockopt::set_socket_keepalive(socket, true)
}

/// Which of this machine's addresses a connection between machines goes from.
pub(super) fn own_address(socket: &OwnedFd) -> Option<std::net::IpAddr> {
    let address = rustix::net::getsockname(socket).ok()?;
    SocketAddr::try_from(address).ok().map(|place| place.ip())
}

/// A connection to the store called `name`, made `within` this time where it is on another host.
pub(super) fn connect(name: &str, within: Duration) -> std::io::Result<OwnedFd> {
    match name.strip_prefix(TCP) {
        Some(address) => connect_tcp(address, within),
        None => connect_local(name),
    }
}

/// A connection to the socket named `name`, where a process of this user listens. A name of the abstract namespace is taken by whoever
/// comes first, and those of a rendezvous can be foreseen.
fn connect_local(name: &str) -> std::io::Result<OwnedFd> {
    let socket = stream(SocketFlags::empty())?;
    let address = SocketAddrUnix::new_abstract_name(name.as_bytes())?;
    rustix::io::retry_on_intr(|| rustix::net::connect(&socket, &address))?;
    match is_own_user(&socket) {
        true => Ok(socket),
        false => Err(std::io::Error::new(
            std::io::ErrorKind::PermissionDenied,
            "it is another user's",
        )),
    }
}

/// Whether the process at the other end of a local socket runs as the user of this one (`SO_PEERCRED`, unix(7): of one that listens, at
/// the time when it began to).
#[must_use]
pub fn is_own_user(socket: impl AsFd) -> bool {
    user_of(socket.as_fd()).is_ok_and(|user| user == rustix::process::geteuid().as_raw())
}

/// Returns the user at the other end. The C library's call, since rustix has no value for a process in a namespace of its own, whose
/// number is 0 here.
fn user_of(socket: BorrowedFd<'_>) -> std::io::Result<libc::uid_t> {
    let mut peer = libc::ucred {
        pid: 0,
        uid: 0,
        gid: 0,
    };
    let mut len = size_of_val(&peer) as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes into the value, which may be any; both live through the call.
    let status = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut len,
        )
    };
    match status {
        0 => Ok(peer.uid),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Whether the other end may try its secret: it belongs to the user that this process runs as, or
/// comes from where users are not known.
pub(super) fn is_welcome(socket: &OwnedFd) -> bool {
    match rustix::net::sockopt::socket_domain(socket) {
        Ok(AddressFamily::UNIX) => is_own_user(socket),
        Ok(_) => watch_tcp(socket).is_ok(),
        Err(_) => false,
    }
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

/// What a message brought beside its bytes.
#[derive(Debug)]
pub(super) enum Passed {
    /// A descriptor.
    Descriptor(OwnedFd),
    /// One that this process could not take: it has no number left for it, or too many came at once.
    Cut,
}

/// Receives what is there, without blocking: 0 bytes at the stream's end. The bytes are whole also where what came
/// beside them was cut.
pub(super) fn receive(
    socket: &OwnedFd,
    buffer: &mut [u8],
    descriptors: &mut impl Extend<Passed>,
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
    if received.flags.contains(ReturnFlags::CTRUNC) {
        // The kernel ends a call behind the first bytes that have descriptors beside them: one message
        // lacks its own. Dropping the buffer closes those that came.
        descriptors.extend([Passed::Cut]);
        return Ok(received.bytes);
    }
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(brought) = message {
            descriptors.extend(brought.map(Passed::Descriptor));
        }
    }
    Ok(received.bytes)
}
