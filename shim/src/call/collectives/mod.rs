//! Collectives (MPI-5.0, chapter 6, and section 8.6 for those of neighbourhoods): each call in its blocking, nonblocking and
//! persistent form.
//!
//! ```text
//!     forms!        the calls: each describes its buffers, and says which family it is of
//!       |
//!     movement, reductions, neighbours     a body for each family
//!       |         |
//!     fast      data, buffers, operands, run     short data as it is; all other data, and how an operation is run
//! ```
#![allow(clippy::too_many_arguments, reason = "those of the standard")]

mod buffers;
mod data;
mod fast;
mod movement;
mod neighbours;
mod operands;
mod reductions;
mod run;

use crate::abi::{Comm, Datatype, Info, Op, Request};
use crate::call::on_comm;
use crate::error::Result;
use crate::process::Process;
use crate::raw::{Counts, Elements, In, List, Out, Ref};
use data::Blocks::{Typed, Varying};
use data::Side;
use reductions::Reduction;
use run::{Call, Form, forms};

pub use reductions::reduce_local;

forms! {
    barrier, ibarrier, barrier_init(), "Barrier":
        movement::barrier();
    bcast, ibcast, bcast_init(buffer: Elements<Out>, root: i32), "Bcast":
        movement::broadcast(buffer.into(), root);
    gather, igather, gather_init(send: Elements<In>, recv: Elements<Out>, root: i32), "Gather":
        movement::gather(send.into(), recv.into(), root);
    gatherv, igatherv, gatherv_init(send: Elements<In>, recv: Out, n: Counts, at: Counts, of: Datatype, root: i32), "Gatherv":
        movement::gather(send.into(), Side::new(recv, Varying(n, at, of)), root);
    scatter, iscatter, scatter_init(send: Elements<In>, recv: Elements<Out>, root: i32), "Scatter":
        movement::scatter(send.into(), recv.into(), root);
    scatterv, iscatterv, scatterv_init(send: In, n: Counts, at: Counts, of: Datatype, recv: Elements<Out>, root: i32), "Scatterv":
        movement::scatter(Side::new(send, Varying(n, at, of)), recv.into(), root);
    allgather, iallgather, allgather_init(send: Elements<In>, recv: Elements<Out>), "Allgather":
        movement::allgather(send.into(), recv.into());
    allgatherv, iallgatherv, allgatherv_init(send: Elements<In>, recv: Out, n: Counts, at: Counts, of: Datatype), "Allgatherv":
        movement::allgather(send.into(), Side::new(recv, Varying(n, at, of)));
    alltoall, ialltoall, alltoall_init(send: Elements<In>, recv: Elements<Out>), "Alltoall":
        movement::alltoall(send.into(), recv.into());
    alltoallv, ialltoallv, alltoallv_init(send: In, send_n: Counts, send_at: Counts, send_of: Datatype, recv: Out, recv_n: Counts, recv_at: Counts, recv_of: Datatype), "Alltoallv":
        movement::alltoall(Side::new(send, Varying(send_n, send_at, send_of)), Side::new(recv, Varying(recv_n, recv_at, recv_of)));
    alltoallw, ialltoallw, alltoallw_init(send: In, send_n: Counts, send_at: Counts, send_of: List<Datatype>, recv: Out, recv_n: Counts, recv_at: Counts, recv_of: List<Datatype>), "Alltoallw":
        movement::alltoall(Side::new(send, Typed(send_n, send_at, send_of)), Side::new(recv, Typed(recv_n, recv_at, recv_of)));

    reduce, ireduce, reduce_init(send: In, recv: Elements<Out>, op: Op, root: i32), "Reduce":
        reductions::reduce(Reduction { send, recv, op }, root);
    allreduce, iallreduce, allreduce_init(send: In, recv: Elements<Out>, op: Op), "Allreduce":
        reductions::allreduce(Reduction { send, recv, op });
    scan, iscan, scan_init(send: In, recv: Elements<Out>, op: Op), "Scan":
        reductions::scan(Reduction { send, recv, op });
    exscan, iexscan, exscan_init(send: In, recv: Elements<Out>, op: Op), "Exscan":
        reductions::exscan(Reduction { send, recv, op });
    reduce_scatter, ireduce_scatter, reduce_scatter_init(send: In, recv: Out, n: Counts, of: Datatype, op: Op), "Reduce_scatter":
        reductions::reduce_scatter(Reduction { send, recv: recv.of(0, of), op }, |member| n.get(member));
    reduce_scatter_block, ireduce_scatter_block, reduce_scatter_block_init(send: In, recv: Elements<Out>, op: Op), "Reduce_scatter_block":
        reductions::reduce_scatter(Reduction { send, recv, op }, |_| recv.count);

    neighbor_allgather, ineighbor_allgather, neighbor_allgather_init(send: Elements<In>, recv: Elements<Out>), "Neighbor_allgather":
        neighbours::allgather(send.into(), recv.into());
    neighbor_allgatherv, ineighbor_allgatherv, neighbor_allgatherv_init(send: Elements<In>, recv: Out, n: Counts, at: Counts, of: Datatype), "Neighbor_allgatherv":
        neighbours::allgather(send.into(), Side::new(recv, Varying(n, at, of)));
    neighbor_alltoall, ineighbor_alltoall, neighbor_alltoall_init(send: Elements<In>, recv: Elements<Out>), "Neighbor_alltoall":
        neighbours::alltoall(send.into(), recv.into());
    neighbor_alltoallv, ineighbor_alltoallv, neighbor_alltoallv_init(send: In, send_n: Counts, send_at: Counts, send_of: Datatype, recv: Out, recv_n: Counts, recv_at: Counts, recv_of: Datatype), "Neighbor_alltoallv":
        neighbours::alltoall(Side::new(send, Varying(send_n, send_at, send_of)), Side::new(recv, Varying(recv_n, recv_at, recv_of)));
    neighbor_alltoallw, ineighbor_alltoallw, neighbor_alltoallw_init(send: In, send_n: Counts, send_at: Counts, send_of: List<Datatype>, recv: Out, recv_n: Counts, recv_at: Counts, recv_of: List<Datatype>), "Neighbor_alltoallw":
        neighbours::alltoall(Side::new(send, Typed(send_n, send_at, send_of)), Side::new(recv, Typed(recv_n, recv_at, recv_of)));
}
