//! Objects: what handles name, and the tables that find them by their handles.

pub(crate) mod attributes;
pub(crate) mod buffer;
pub(crate) mod comm;
pub(crate) mod datatype;
pub(crate) mod errhandler;
pub(crate) mod file;
pub(crate) mod group;
pub(crate) mod info;
pub(crate) mod message;
pub(crate) mod named;
pub(crate) mod operation;
pub(crate) mod partitioned;
pub(crate) mod pending;
pub(crate) mod request;
pub(crate) mod session;
pub(crate) mod table;
pub(crate) mod topology;
pub(crate) mod window;
