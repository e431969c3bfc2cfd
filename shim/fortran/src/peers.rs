//! How many elements the arrays of a collective operation have.

use crate::abi::Comm;
use crate::address;
use crate::c::{
    PMPI_Cartdim_get, PMPI_Comm_rank, PMPI_Comm_remote_size, PMPI_Comm_size, PMPI_Comm_test_inter,
    PMPI_Dist_graph_neighbors_count, PMPI_Graph_neighbors_count, PMPI_Topo_test,
};
use crate::descriptor::Buffer;

const CART: i32 = 211;
const GRAPH: i32 = 212;
const DIST_GRAPH: i32 = 213;

/// `MPI_ROOT`.
const ROOT: i32 = -4;

/// Returns the number of processes that a process of the communicator speaks to: those of the other group, where there is one.
pub(crate) fn all(comm: i32) -> i32 {
    let comm = Comm::of_fortran(comm);
    let (mut is_inter, mut size) = (0, 0);
    // SAFETY: the results may be written.
    unsafe {
        PMPI_Comm_test_inter(comm, &raw mut is_inter);
        match is_inter {
            0 => PMPI_Comm_size(comm, &raw mut size),
            _ => PMPI_Comm_remote_size(comm, &raw mut size),
        };
    }
    size
}

/// Returns that number, or zero where the arrays have no meaning since the data lie where they go.
///
/// # Safety
///
/// As for [`Buffer::base`].
pub(crate) unsafe fn unless_in_place<B: Buffer>(buffer: B, comm: i32) -> i32 {
    // SAFETY: as for this function.
    match address::is_in_place(unsafe { buffer.base() }) {
        true => 0,
        false => all(comm),
    }
}

/// Returns whether this process is the root of an operation: between two groups it is where the caller says `MPI_ROOT`.
pub(crate) fn is_root(root: i32, comm: i32) -> bool {
    let comm = Comm::of_fortran(comm);
    let (mut is_inter, mut rank) = (0, 0);
    // SAFETY: the results may be written.
    unsafe {
        PMPI_Comm_test_inter(comm, &raw mut is_inter);
        PMPI_Comm_rank(comm, &raw mut rank);
    }
    root == if is_inter == 0 { rank } else { ROOT }
}

/// Returns the number of neighbours that send to this process.
pub(crate) fn sources(comm: i32) -> i32 {
    neighbours(comm).0
}

/// Returns the number of neighbours to which this process sends.
pub(crate) fn destinations(comm: i32) -> i32 {
    neighbours(comm).1
}

fn neighbours(comm: i32) -> (i32, i32) {
    let comm = Comm::of_fortran(comm);
    let (mut kind, mut rank, mut first, mut second, mut weighted) = (0, 0, 0, 0, 0);
    // SAFETY: the results may be written.
    unsafe {
        PMPI_Topo_test(comm, &raw mut kind);
        match kind {
            CART => {
                PMPI_Cartdim_get(comm, &raw mut first);
                (2 * first, 2 * first)
            }
            GRAPH => {
                PMPI_Comm_rank(comm, &raw mut rank);
                PMPI_Graph_neighbors_count(comm, rank, &raw mut first);
                (first, first)
            }
            DIST_GRAPH => {
                PMPI_Dist_graph_neighbors_count(
                    comm,
                    &raw mut first,
                    &raw mut second,
                    &raw mut weighted,
                );
                (first, second)
            }
            // The library refuses the operation.
            _ => (0, 0),
        }
    }
}
