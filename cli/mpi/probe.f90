! The trial of a compiler: arrays, LOGICAL, texts and arguments that are left out, as libmpifort_abi reads them.
program probe
  use mpi_f08, only: MPI_Comm, MPI_COMM_WORLD, operator(==)
  use mpi, only: MPI_STATUS_SIZE
  implicit none
  interface
    subroutine tagwire_mpi_probe(section, part, inner, yes, no, text, answer, absent)
      type(*), dimension(..) :: section, part, inner
      logical :: yes, no
      character(len=*) :: text
      integer :: answer
      integer, optional :: absent
    end subroutine tagwire_mpi_probe
  end interface
  type triple
    real(4) :: first, second, third
  end type triple
  type outer
    real(4) :: first
    type(triple) :: inner
  end type outer
  real(8), target :: array(5, 3)
  type(triple), target :: triples(4)
  type(outer), target :: outers(2)
  type(MPI_Comm) :: world
  integer :: answer
  world = MPI_COMM_WORLD
  if (.not. world == MPI_COMM_WORLD) call fail('handles of mpi_f08 are not compared')
  if (storage_size(answer) /= 32 .or. storage_size(1.0) /= 32 .or. storage_size(1d0) /= 64 .or. MPI_STATUS_SIZE /= 8) &
    call fail('INTEGER, REAL or DOUBLE PRECISION has another size than 4, 4 and 8 bytes')
  answer = 99
  call tagwire_mpi_probe(array(1:5:2, 1:3:2), triples%second, outers%inner, .true., .false., 'probe', answer)
  select case (answer)
  case (0)
  case (1, 2)
    call fail('arrays are passed in a form that libmpifort_abi does not know')
  case (3)
    call fail('LOGICAL has other values than 1 and 0')
  case (4)
    call fail('the length of a text is passed in another place')
  case default
    call fail('an optional argument that is left out is no null address')
  end select
contains
  subroutine fail(why)
    use, intrinsic :: iso_fortran_env, only: error_unit
    character(len=*), intent(in) :: why
    write (error_unit, '(2a)') 'probe: ', why
    stop 1
  end subroutine fail
end program probe
