//! Layouts, datatypes and operations: how values lie in memory, and how two ranks' values become one.
//!
//! There are two descriptions of values in memory, for two uses:
//!
//! - A [`Layout`] is one [`Basic`] type, or a contiguous block of one. An [`Operation`] combines two buffers of one layout,
//!   element by element, as reductions need it (MPI-5.0, section 6.9). It has the size of two words, and what a reduction asks
//!   of it is a load.
//! - A [`Datatype`] is any derived type of MPI (MPI-5.0, chapter 5). Committed, it is a [`Program`], which a [`Packer`] and an
//!   [`Unpacker`] run. [`Program::layout`] returns the layout of those that are one.
//!
//! A user's operation on a datatype that is no layout combines packed data: its layout is as many bytes as an element has data,
//! and its function unpacks them. Buffers are bytes, at any address.
//!
//! ```
//! use tagwire_layout::{Basic, Layout, Operation};
//!
//! let layout = Layout::of(Basic::I32);
//! let left: Vec<u8> = [1_i32, 2, 3].into_iter().flat_map(i32::to_ne_bytes).collect();
//! let mut into: Vec<u8> = [10_i32, 20, 30].into_iter().flat_map(i32::to_ne_bytes).collect();
//! Operation::Sum.combine(&layout, &left, &mut into)?;
//! assert_eq!(into[..4], 11_i32.to_ne_bytes());
//!
//! let refused = Operation::Sum.check(&Layout::of(Basic::Bool));
//! assert_eq!(refused.unwrap_err().to_string(), "the operation sum is not defined for the type bool");
//! # Ok::<(), tagwire_layout::Error>(())
//! ```
//!
//! | module | what is there |
//! |---|---|
//! | `basic` | the basic types, with their sizes |
//! | `layout` | layouts of one basic type: what operations combine |
//! | `datatype` | derived types: constructors, sizes, bounds |
//! | `program` | committed types: steps in their simplest form, and how they are run |
//! | `signature` | the basic types of a datatype in their order |
//! | `memory`, `packer` | memory of callers, and cursors that pack and unpack it |
//! | `external` | external32 |
//! | `copy`, `rows` | copies of many blocks |
//! | `operation`, `user` | the operations, predefined and of users |
//! | `function` | what an operation does with two values |
//! | `value` | how a value is read from bytes and written to them |
//! | `x87` | C's `long double` |
//! | `kernel` | the loops over buffers, for each level of the processor |

mod basic;
mod copy;
mod datatype;
mod error;
mod external;
mod function;
mod kernel;
mod layout;
mod memory;
mod operation;
mod packer;
mod program;
mod rows;
mod signature;
mod user;
mod value;
mod x87;

pub use basic::{Basic, Element};
pub use datatype::{
    Constructor, Datatype, Distributed, Distribution, Member, Order, Slice, VectorShape,
};
pub use error::{Error, Result};
pub use external::{pack_external, unpack_external, unpack_external_part};
pub use layout::Layout;
pub use memory::{Source, Target};
pub use operation::Operation;
pub use packer::{Packer, Unpacker};
pub use program::{Block, Blocks, Program};
pub use signature::{Elements, Signature};
pub use user::UserOperation;
