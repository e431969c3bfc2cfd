//! The entry points that the tables give.

#![allow(
    missing_docs,
    unused_variables,
    clippy::all,
    reason = "written by the generator; the parameters are the standard's"
)]

use std::ffi::c_void;

use crate::c::*;
use crate::copied::Copied;
use crate::descriptor::{Buffer, Descriptor};
use crate::handles::Handles;
use crate::raise::{On, fail, finish};
use crate::section::{self, Section};
use crate::{abi, address, peers, special, text};

include!(concat!(env!("OUT_DIR"), "/entries.rs"));
