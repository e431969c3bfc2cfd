//! ob1 and cm over the system's libfabric (1.17 on Debian 12).
//!
//! `shm` is not here: ranks of one process write to each other's endpoints directly, also once they
//! are closed. Nor is `sockets`, which ob1 passes as well: a flood takes it most of a minute.
#![cfg(not(loom))]

mod common;
mod fabrics;

pair!(ob1_rxm: selection, "ob1", "ofi:tcp;ofi_rxm", SYSTEM_LIBFABRIC);
pair!(cm_rxm: selection, "cm", "ofi:tcp;ofi_rxm", SYSTEM_LIBFABRIC);
pair!(ob1_net: selection, "ob1", "ofi:net", SYSTEM_LIBFABRIC);
pair!(ob1_rxd: selection, "ob1", "ofi:udp;ofi_rxd", SYSTEM_LIBFABRIC);
