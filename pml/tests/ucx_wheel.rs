//! ob1 and cm over the UCX of the wheel libucx-cu12 (1.22, `ci/peers`).
#![cfg(not(loom))]

mod common;
mod fabrics;

pair!(ob1_tcp: selection, "ob1", "ucx:tcp,self", NEWER_UCX);
pair!(cm_tcp: selection, "cm", "ucx:tcp,self", NEWER_UCX);
pair!(ob1_posix: selection, "ob1", "ucx:posix,cma,self", NEWER_UCX);
pair!(cm_posix: selection, "cm", "ucx:posix,cma,self", NEWER_UCX);
