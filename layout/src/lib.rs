//! Layouts and operations: how values lie in memory, and how two ranks' values become one.
//!
//! A [`Layout`] is what MPI calls a datatype. It says which [`Basic`] types follow each other in a
//! buffer. An [`Operation`] combines two buffers of one layout, element by element, as reductions
//! need it (MPI-5.0, section 6.9). Buffers are bytes, at any address.
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
//! | `layout` | layouts; derived types will be further kinds of them |
//! | `operation`, `user` | the operations, predefined and of users |
//! | `function` | what an operation does with two values |
//! | `value` | how a value is read from bytes and written to them |
//! | `x87` | C's `long double` |
//! | `kernel` | the loops over buffers, for each level of the processor |

mod basic;
mod error;
mod function;
mod kernel;
mod layout;
mod operation;
mod user;
mod value;
mod x87;

pub use basic::{Basic, Element};
pub use error::{Error, Result};
pub use layout::Layout;
pub use operation::Operation;
pub use user::UserOperation;
