//! The ABI's handles and its status. A stand-in until the real one is merged.

macro_rules! handles {
    ($($name:ident $null:literal),*) => {$(
        #[doc = concat!("`MPI_", stringify!($name), "`.")]
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(transparent)]
        pub struct $name(pub usize);

        impl $name {
            /// No object.
            pub const NULL: Self = Self($null);
        }
    )*};
}

handles! {
    Comm 0x100, Group 0x108, Win 0x110, File 0x118, Session 0x120, Message 0x128, Info 0x130,
    Errhandler 0x140, Request 0x180, Datatype 0x200, Op 0x20
}

/// `MPI_Status`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Status {
    /// The source's rank.
    pub source: i32,
    /// The tag.
    pub tag: i32,
    /// The error code.
    pub error: i32,
    /// What the library keeps there.
    pub internal: [i32; 5],
}
