//! Bindings to libfabric, which is opened at run time.
//!
//! Nothing of libfabric is needed to build this: neither the library, nor its headers, nor
//! libclang. `ci/bindings libfabric` makes [`bindings`] anew; the test `layout` holds it against
//! the headers of the machine, where there are any.
//!
//! libfabric's symbols are versioned, and each version goes with its own structures. What is
//! bound here is API 1.17: [`Library`] asks for the symbols of just these structures, so that one
//! binary works with every library from 1.17 on. What headers offer as inline functions are
//! functions over the operation tables in [`calls`].

#[allow(
    missing_docs,
    missing_debug_implementations,
    non_camel_case_types,
    unsafe_code,
    clippy::all,
    reason = "made by bindgen"
)]
pub mod bindings;
pub mod calls;
mod library;

pub use library::{Library, LoadError};

/// The API level of the structures that are bound, to be requested from the library: error entries
/// and registration attributes grow with it.
pub const API_VERSION: u32 =
    ((bindings::FI_MAJOR_VERSION << 16) | bindings::FI_MINOR_VERSION) as u32;
