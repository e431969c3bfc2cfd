//! Attributes that programs keep with objects (MPI-5.0, section 7.7).

use std::collections::BTreeMap;

use crate::raw::Pointer;

/// The attributes of an object, by key.
pub(crate) type Attributes = BTreeMap<i32, Pointer>;

/// Keys of attributes that `MPI_COMM_WORLD` has (MPI-5.0, section 9.1.2).
pub(crate) mod key {
    pub(crate) const TAG_UB: i32 = 501;
    pub(crate) const IO: i32 = 502;
    pub(crate) const HOST: i32 = 503;
    pub(crate) const WTIME_IS_GLOBAL: i32 = 504;
    pub(crate) const APPNUM: i32 = 505;
    pub(crate) const LASTUSEDCODE: i32 = 506;
    pub(crate) const UNIVERSE_SIZE: i32 = 507;
}
