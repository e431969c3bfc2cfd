//! What providers say they have and is not to be trusted. Each entry says what was seen.

use tagwire_libfabric_sys::bindings::{FI_MULTI_RECV, FI_RMA};

use crate::fabric::Net;

/// Whether many messages may be received into one buffer.
pub(crate) fn trusts_multi_receives(net: &Net) -> bool {
    let provider = net.provider();
    // Seen with 2.x: completions of messages that came before their buffer was posted name another
    // buffer than the one that their bytes are in.
    let mistaken = provider.name() == "shm" && net.library().version().0 >= 2;
    provider.capabilities() & FI_MULTI_RECV != 0 && !mistaken
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

/// Whether looking for a tagged message leaves it where it is.
pub(crate) fn trusts_looks(net: &Net) -> bool {
    // Seen with 1.17: after a look no receive gets the message.
    !(net.provider().name() == "shm" && net.library().version().0 < 2)
}

/// Whether a peer's address may be taken out while operations with it are under way, which ends
/// them: so with providers that have connections.
pub(crate) fn disconnects(net: &Net) -> bool {
    let name = net.provider().name();
    name.ends_with("ofi_rxm") || name == "tcp" || name == "net"
}
