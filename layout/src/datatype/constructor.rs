//! Constructors: how a datatype was made, with the arguments as they were given.

use crate::{Basic, Datatype};

/// How a datatype was made: what `MPI_Type_get_envelope` and `MPI_Type_get_contents` tell (MPI-5.0, section 5.1.13).
///
/// Counts and displacements have the units of the MPI procedure: elements for `Vector`, `Indexed` and `IndexedBlock`, bytes
/// for those with an H and for `Struct` and `Resized`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Constructor {
    /// A basic type, `MPI_COMBINER_NAMED`.
    Named(Basic),
    /// `MPI_Type_dup`.
    Duplicate(Datatype),
    /// `MPI_Type_contiguous`.
    Contiguous {
        /// How many elements.
        count: u64,
        /// The type of each.
        of: Datatype,
    },
    /// `MPI_Type_vector`: the stride is counted in extents of `of`.
    Vector {
        /// How many blocks, how long they are, and how far apart.
        shape: VectorShape,
        /// The type of each element.
        of: Datatype,
    },
    /// `MPI_Type_create_hvector`: the stride is counted in bytes.
    Hvector {
        /// How many blocks, how long they are, and how far apart.
        shape: VectorShape,
        /// The type of each element.
        of: Datatype,
    },
    /// `MPI_Type_indexed`: displacements are counted in extents of `of`.
    Indexed {
        /// How many elements each block has.
        lengths: Box<[u64]>,
        /// Where each block begins.
        displacements: Box<[i64]>,
        /// The type of each element.
        of: Datatype,
    },
    /// `MPI_Type_create_hindexed`: displacements are counted in bytes.
    Hindexed {
        /// How many elements each block has.
        lengths: Box<[u64]>,
        /// Where each block begins.
        displacements: Box<[i64]>,
        /// The type of each element.
        of: Datatype,
    },
    /// `MPI_Type_create_indexed_block`: displacements are counted in extents of `of`.
    IndexedBlock {
        /// How many elements a block has.
        length: u64,
        /// Where each block begins.
        displacements: Box<[i64]>,
        /// The type of each element.
        of: Datatype,
    },
    /// `MPI_Type_create_hindexed_block`: displacements are counted in bytes.
    HindexedBlock {
        /// How many elements a block has.
        length: u64,
        /// Where each block begins.
        displacements: Box<[i64]>,
        /// The type of each element.
        of: Datatype,
    },
    /// `MPI_Type_create_struct`.
    Struct(Box<[Member]>),
    /// `MPI_Type_create_resized`.
    Resized {
        /// The lower bound.
        lower: i64,
        /// The extent.
        extent: i64,
        /// The type of which the bounds are replaced.
        of: Datatype,
    },
    /// `MPI_Type_create_subarray`.
    Subarray {
        /// The array and the part of it, by dimension.
        dimensions: Box<[Slice]>,
        /// Which dimension is the fastest.
        order: Order,
        /// The type of each element.
        of: Datatype,
    },
    /// `MPI_Type_create_darray`.
    Darray {
        /// How many processes share the array.
        processes: u64,
        /// Which of them this part is of.
        rank: u64,
        /// The array and its distribution, by dimension.
        dimensions: Box<[Distributed]>,
        /// Which dimension is the fastest.
        order: Order,
        /// The type of each element.
        of: Datatype,
    },
}

/// Equal blocks, equally spaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VectorShape {
    /// How many blocks.
    pub count: u64,
    /// How many elements a block has.
    pub length: u64,
    /// From the beginning of a block to that of the next.
    pub stride: i64,
}

/// A member of a struct: `count` neighbours of a type at a displacement in bytes.
#[derive(Debug, Clone)]
pub struct Member {
    /// How many elements.
    pub count: u64,
    /// Where the first one is.
    pub displacement: i64,
    /// The type of each.
    pub of: Datatype,
}

/// One dimension of an array, and the part of it that a subarray has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    /// How many elements the array has.
    pub size: u64,
    /// How many the part has.
    pub length: u64,
    /// The first element of the part, counted from 0.
    pub start: u64,
}

/// Which dimension of an array is the fastest: has neighbours in memory for neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The last one, as in C.
    C,
    /// The first one, as in Fortran.
    Fortran,
}

/// One dimension of an array that is distributed over a grid of processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Distributed {
    /// How many elements the array has.
    pub size: u64,
    /// How they are distributed.
    pub distribution: Distribution,
    /// How many processes the grid has in this dimension.
    pub processes: u64,
}

/// How the elements of one dimension are distributed (MPI-5.0, section 5.1.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distribution {
    /// One block for each process, of a length or of as few elements as suffice.
    Block(Option<u64>),
    /// Blocks of a length, or of 1, that are dealt out in turn.
    Cyclic(Option<u64>),
    /// Not distributed: the grid has one process here.
    None,
}
