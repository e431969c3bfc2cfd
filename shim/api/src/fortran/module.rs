//! Writes the modules `mpi` and `mpi_f08`.

use std::fmt::Write as _;

use super::declare::Interface;
use super::include::{self, FUNCTIONS};
use super::routine::{Of, Routine};
use crate::Api;
use crate::kind::Twin;

/// Writes a module; `mpi` with the one of the types, which both use.
pub(crate) fn write(api: &Api, routines: &[Routine<'_>], interface: Interface) -> String {
    let mut out = HEAD.to_owned();
    let name = match interface {
        Interface::Mpi => "mpi",
        Interface::Mpi2008 => "mpi_f08",
    };
    if interface == Interface::Mpi {
        types(&mut out, api);
    }
    let _ = write!(
        out,
        "module {name}\n  use tagwire_mpi_types\n  use, intrinsic :: iso_c_binding, only: C_PTR\n  \
         implicit none\n  private :: C_PTR\n\n"
    );
    out += &include::declared(api, interface);
    out += &include::addresses(Some(interface));
    match interface {
        Interface::Mpi => {
            for function in FUNCTIONS {
                let _ = writeln!(out, "  EXTERNAL :: MPI_{function}");
            }
        }
        Interface::Mpi2008 => out += CALLBACKS,
    }
    for prefix in ["MPI_", "PMPI_"] {
        for routine in routines {
            match interface {
                Interface::Mpi if !routine.is_2008_only => mpi(&mut out, routine, prefix),
                Interface::Mpi2008 if !routine.is_mpi_only => mpi_2008(&mut out, routine, prefix),
                _ => {}
            }
        }
        out += &others(interface).replace("@MPI_", prefix);
    }
    let _ = writeln!(out, "end module {name}");
    out
}

/// The interface of a routine in the module `mpi`.
fn mpi(out: &mut String, routine: &Routine<'_>, prefix: &str) {
    let name = format!("{prefix}{}", routine.function.name);
    let body = routine.body(&name, Twin::Int, Interface::Mpi);
    let is_pointer = |of| of == Some(Of::Pointer);
    let mut arguments = routine.arguments(Twin::Int).into_iter();
    // An address comes as an integer or as a C_PTR.
    let generic = arguments.find(|argument| is_pointer(argument.of));
    let Some(pointer) = generic else {
        let _ = write!(out, "  interface\n{body}  end interface\n");
        return;
    };
    let with_pointer = body.replace(&name, &format!("{name}_cptr")).replace(
        &format!("INTEGER(KIND=MPI_ADDRESS_KIND) :: {}\n", pointer.name),
        &format!("TYPE(C_PTR) :: {}\n", pointer.name),
    );
    let _ = write!(
        out,
        "  interface {name}\n{body}{with_pointer}  end interface\n"
    );
}

/// The interfaces of a routine in the module `mpi_f08`: one name for both forms of counts.
fn mpi_2008(out: &mut String, routine: &Routine<'_>, prefix: &str) {
    let mut bodies = String::new();
    for twin in routine.twins_2008() {
        let name = format!("{prefix}{}", routine.name_2008(*twin));
        if routine.has_c_name && *twin == Twin::Big {
            let generic = format!("{prefix}{}", routine.function.name_of(Twin::Big));
            let body = routine.body(&name, *twin, Interface::Mpi2008);
            let _ = write!(out, "  interface {generic}\n{body}  end interface\n");
        } else {
            bodies += &routine.body(&name, *twin, Interface::Mpi2008);
        }
    }
    let generic = format!("{prefix}{}", routine.function.name);
    let _ = write!(out, "  interface {generic}\n{bodies}  end interface\n");
}

impl Routine<'_> {
    /// The specific name of a form in `mpi_f08`, without `MPI_` (MPI-5.0, section 19.1.5).
    pub(crate) fn name_2008(&self, twin: Twin) -> String {
        let end = if self.has_buffers() { "_f08ts" } else { "_f08" };
        format!("{}{end}", self.function.name_of(twin))
    }
}

/// The types of handles and statuses, and their comparisons.
fn types(out: &mut String, api: &Api) {
    let names: Vec<_> = api.handles().collect();
    out.push_str(TYPES);
    for name in &names {
        let _ = writeln!(
            out,
            "  type, bind(C) :: MPI_{name}\n    integer :: MPI_VAL\n  end type MPI_{name}"
        );
    }
    for (operator, end) in [("==", "equal"), ("/=", "differ")] {
        let _ = writeln!(out, "  interface operator ({operator})");
        for name in &names {
            let _ = writeln!(out, "    module procedure {name}_{end}");
        }
        let _ = writeln!(out, "  end interface operator ({operator})");
    }
    for name in &names {
        let _ = writeln!(out, "  private :: {name}_equal, {name}_differ");
    }
    out.push_str("contains\n");
    for name in &names {
        for (operator, end) in [("==", "equal"), ("/=", "differ")] {
            let _ = write!(
                out,
                "  elemental logical function {name}_{end}(one, other)\n    \
                 type(MPI_{name}), intent(in) :: one, other\n    \
                 {name}_{end} = one%MPI_VAL {operator} other%MPI_VAL\n  end function {name}_{end}\n"
            );
        }
    }
    out.push_str("end module tagwire_mpi_types\n\n");
}

/// What is not in the table of the C interface: conversions of statuses, and the size of a variable.
fn others(interface: Interface) -> &'static str {
    match interface {
        Interface::Mpi => OTHERS,
        Interface::Mpi2008 => OTHERS_2008,
    }
}

const HEAD: &str = "! Written by shim/api of Tagwire from its tables: MPI 5.0 for Fortran.\n\n";

const TYPES: &str = "\
module tagwire_mpi_types
  implicit none
  type, bind(C) :: MPI_Status
    integer :: MPI_SOURCE
    integer :: MPI_TAG
    integer :: MPI_ERROR
    integer, private :: MPI_internal(5)
  end type MPI_Status
";

const CALLBACKS: &str = include_str!("../../fortran/callbacks.f90");

const OTHERS: &str = "  interface
  subroutine @MPI_F_sync_reg(buf)
    TYPE(*) :: buf(*)
    !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
    !DIR$ IGNORE_TKR buf
  end subroutine @MPI_F_sync_reg
  subroutine @MPI_Status_f2f08(f_status, f08_status, ierror)
    import
    INTEGER :: f_status(MPI_STATUS_SIZE), ierror
    TYPE(MPI_Status) :: f08_status
  end subroutine @MPI_Status_f2f08
  subroutine @MPI_Status_f082f(f08_status, f_status, ierror)
    import
    TYPE(MPI_Status) :: f08_status
    INTEGER :: f_status(MPI_STATUS_SIZE), ierror
  end subroutine @MPI_Status_f082f
  end interface
  interface @MPI_Sizeof
  subroutine @MPI_Sizeof_fts(x, size, ierror)
    TYPE(*), DIMENSION(..) :: x
    INTEGER :: size, ierror
  end subroutine @MPI_Sizeof_fts
  end interface
";

const OTHERS_2008: &str = "  interface @MPI_F_sync_reg
  subroutine @MPI_F_sync_reg_f08ts(buf)
    TYPE(*), DIMENSION(..), ASYNCHRONOUS :: buf
  end subroutine @MPI_F_sync_reg_f08ts
  end interface
  interface @MPI_Sizeof
  subroutine @MPI_Sizeof_f08ts(x, size, ierror)
    TYPE(*), DIMENSION(..) :: x
    INTEGER, INTENT(OUT) :: size
    INTEGER, OPTIONAL, INTENT(OUT) :: ierror
  end subroutine @MPI_Sizeof_f08ts
  end interface
  interface @MPI_Status_f2f08
  subroutine @MPI_Status_f2f08_f08(f_status, f08_status, ierror)
    import
    INTEGER, INTENT(IN) :: f_status(MPI_STATUS_SIZE)
    TYPE(MPI_Status), INTENT(OUT) :: f08_status
    INTEGER, OPTIONAL, INTENT(OUT) :: ierror
  end subroutine @MPI_Status_f2f08_f08
  end interface
  interface @MPI_Status_f082f
  subroutine @MPI_Status_f082f_f08(f08_status, f_status, ierror)
    import
    TYPE(MPI_Status), INTENT(IN) :: f08_status
    INTEGER, INTENT(OUT) :: f_status(MPI_STATUS_SIZE)
    INTEGER, OPTIONAL, INTENT(OUT) :: ierror
  end subroutine @MPI_Status_f082f_f08
  end interface
";
