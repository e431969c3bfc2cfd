//! ob1 and cm over RDMA devices, where there are any: `tests/verbs/run` brings this program to a guest
//! that has one in software.
#![cfg(not(loom))]

mod common;
mod fabrics;

pair!(ob1_ofi: selection, "ob1", "ofi:verbs;ofi_rxm", SOFTWARE_DEVICES);
pair!(cm_ofi: selection, "cm", "ofi:verbs;ofi_rxm", SOFTWARE_DEVICES);
pair!(ob1_rc: selection, "ob1", "ucx:rc_verbs,tcp,self", SOFTWARE_UCX);
pair!(cm_rc: selection, "cm", "ucx:rc_verbs,tcp,self", SOFTWARE_UCX);
