//! What providers say they have and is not to be trusted. Each entry says what was seen.

use tagwire_base::Error as BaseError;
use tagwire_libfabric_sys::Library;
use tagwire_libfabric_sys::bindings::{FI_MULTI_RECV, FI_RMA};

use crate::error::bad_setting;
use crate::fabric::{Infos, Net, Provider};

/// Whether many messages may be received into one buffer.
pub(crate) fn trusts_multi_receives(net: &Net) -> bool {
    let provider = net.provider();
    // Seen with 2.x: completions of messages that came before their buffer was posted name another
    // buffer than the one that their bytes are in.
    let mistaken = provider.name() == "shm" && net.library().version().0 >= 2;
    // Else messages that are longer than what is left would be cut, and nobody says whose they were.
    provider.capabilities() & FI_MULTI_RECV != 0 && !mistaken && net.keeps_room()
}

/// Whether messages longer than a buffer of the provider are asked for, or cut and copied, before they
/// are sent: plain tcp alone writes them to the connection as they are.
pub(crate) fn asks_before_long_messages(provider: &Provider) -> bool {
    provider.name() != "tcp"
}

/// Whether peers' memory may be accessed.
pub(crate) fn trusts_remote_access(net: &Net) -> bool {
    let provider = net.provider();
    // Seen with 1.17 and 2.x: shared memory is read and written by cross-memory attach without a
    // look at the key, so also after the end of a registration.
    let unchecked = provider.name() == "shm";
    // Seen with both: an access under a key that is not valid never ends.
    let endless = provider.name().ends_with("ofi_rxd");
    provider.capabilities() & FI_RMA != 0 && !unchecked && !endless
}

/// Whether a write may tell its target a value.
pub(crate) fn trusts_notices(net: &Net) -> bool {
    // Seen with 1.17: over verbs such a write uses up a receive, and ofi_rxm shows its buffer as a message. Over tcp one of which a
    // part has come when its connection breaks fails under no operation, which ofi_rxm takes for one of its own: SIGSEGV; read in 2.6.0
    // as well.
    let mistaken = net.provider().name().ends_with("ofi_rxm");
    trusts_remote_access(net) && !mistaken
}

/// Whether writes to a peer become visible in their order because bytes of the one connection to it are stored as they come.
pub(crate) fn streams(provider: &Provider) -> bool {
    provider.name() == "tcp;ofi_rxm"
}

/// What helps where a newer library is known to be right.
const NEWER: &str = "a newer libfabric (TAGWIRE_LIBFABRIC) ";

/// Whether the provider's matching can be used.
///
/// # Errors
/// Why not.
pub(crate) fn check_matching(library: &Library, infos: &Infos) -> Result<(), BaseError> {
    let name = infos.iter().next().map(|provider| provider.name());
    let old = library.version() < (1, 19);
    let (newer, why) = match name.as_deref() {
        // Read in 1.17.0: a receive looks through the unexpected messages with ignore bits that an
        // earlier use of their entry has left, not with its own. And what was looked at is lost.
        Some("shm") if old => (NEWER, "forgets the wildcards of receives"),
        // Seen with 1.17: what a peer sent and nobody received goes with its connection.
        Some("net") if old => (NEWER, "forgets the messages of peers that have left"),
        // Seen with 1.17 and 2.x, once in several runs under load.
        Some(name) if name.ends_with("ofi_rxd") => {
            ("", "lets messages of a sender overtake each other")
        }
        // Seen with 1.17, in most runs: its thread matches meanwhile. What peers that have left sent is lost too.
        Some("sockets") => ("", "loses messages where receives and claims race"),
        _ => return Ok(()),
    };
    let name = name.unwrap_or_default();
    let expected = format!("another provider, {newer}or pml=ob1: {name} of this libfabric {why}");
    Err(bad_setting("transport", &format!("ofi:{name}"), &expected))
}

/// Whether a peer's address may be taken out while operations with it are under way, which ends
/// them: so with providers that have connections.
pub(crate) fn disconnects(net: &Net) -> bool {
    let name = net.provider().name();
    name.ends_with("ofi_rxm") || name == "tcp" || name == "net"
}

/// Whether threads of the provider move all bytes. That it makes progress by itself
/// (`FI_PROGRESS_AUTO`) others say as well whose device, or kernel, does that.
pub(crate) fn moves_by_threads(net: &Net) -> bool {
    // Seen with 1.17: bound to one core, as the rank that opened it is, the thread gets its turn when the
    // time slice of a rank that spins is over. 8 bytes took two slices of 2.8 ms there and back.
    net.provider().name() == "sockets"
}

/// Whether the endpoint may be closed while it moves bytes.
pub(crate) fn closes_mid_transfer(net: &Net) -> bool {
    // Seen with 1.17: it crashes in its own lists.
    !(net.provider().name().ends_with("ofi_rxm") && net.library().version() < (1, 19))
}
