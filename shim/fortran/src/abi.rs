//! Handles and statuses of the C interface, and their integers (MPI-5.0, section 20.3).

/// A handle of C that has an integer of Fortran.
pub(crate) trait Handle: Copy {
    /// What no function has written yet.
    const UNSET: Self;

    /// Returns the handle of an integer.
    fn of_fortran(value: i32) -> Self;

    /// Returns the integer of the handle.
    fn to_fortran(self) -> i32;

    /// Whether a function has written it.
    fn is_set(self) -> bool;
}

/// Values below it are handles of the standard, equal in all languages.
const RESERVED: usize = 4096;

macro_rules! handles {
    ($($Handle:ident $to:ident $from:ident,)*) => {
        unsafe extern "C" {
            $(
                fn $to(handle: $Handle) -> i32;
                fn $from(value: i32) -> $Handle;
            )*
        }

        $(
            #[derive(Debug, Clone, Copy, PartialEq, Eq)]
            #[repr(transparent)]
            pub(crate) struct $Handle(pub(crate) usize);

            impl $Handle {
                pub(crate) const UNSET: Self = <Self as Handle>::UNSET;

                #[inline]
                pub(crate) fn of_fortran(value: i32) -> Self {
                    <Self as Handle>::of_fortran(value)
                }

                /// Writes the integer, where a function of C has written the handle.
                ///
                /// # Safety
                ///
                /// `to` may be written.
                #[inline]
                pub(crate) unsafe fn write(self, to: *mut i32) {
                    if self.is_set() {
                        // SAFETY: as for this function.
                        unsafe { *to = self.to_fortran() };
                    }
                }
            }

            impl Handle for $Handle {
                const UNSET: Self = Self(usize::MAX);

                #[inline]
                fn of_fortran(value: i32) -> Self {
                    match usize::try_from(value) {
                        Ok(value) if value < RESERVED => Self(value),
                        // SAFETY: the function takes every integer.
                        _ => unsafe { $from(value) },
                    }
                }

                #[inline]
                fn to_fortran(self) -> i32 {
                    match i32::try_from(self.0) {
                        Ok(value) if self.0 < RESERVED => value,
                        // SAFETY: the handle has come from the library.
                        _ => unsafe { $to(self) },
                    }
                }

                fn is_set(self) -> bool {
                    self.0 != usize::MAX
                }
            }
        )*
    };
}

handles! {
    Comm PMPI_Comm_toint PMPI_Comm_fromint,
    Datatype PMPI_Type_toint PMPI_Type_fromint,
    Errhandler PMPI_Errhandler_toint PMPI_Errhandler_fromint,
    File PMPI_File_toint PMPI_File_fromint,
    Group PMPI_Group_toint PMPI_Group_fromint,
    Info PMPI_Info_toint PMPI_Info_fromint,
    Message PMPI_Message_toint PMPI_Message_fromint,
    Op PMPI_Op_toint PMPI_Op_fromint,
    Request PMPI_Request_toint PMPI_Request_fromint,
    Session PMPI_Session_toint PMPI_Session_fromint,
    Win PMPI_Win_toint PMPI_Win_fromint,
}

/// A status: eight integers in all languages.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Status(#[allow(dead_code, reason = "its fields are the library's")] [i32; 8]);

/// Error classes that the binding finds itself.
pub(crate) const ERR_BUFFER: i32 = 1;
pub(crate) const ERR_ARG: i32 = 13;
pub(crate) const ERR_UNSUPPORTED_OPERATION: i32 = 55;

/// `MPI_UNDEFINED`.
pub(crate) const UNDEFINED: i32 = -32766;
