! The trial of a compiler: arrays, LOGICAL, texts and arguments that are left out, as libmpifort_abi reads them.
program probe
  use mpi_f08, only: MPI_Comm, MPI_COMM_WORLD, operator(==)
  use mpi, only: MPI_STATUS_SIZE
  implicit none
  interface
    subroutine tagwire_mpi_probe(section, part, yes, no, text, answer, absent)
      type(*), dimension(..) :: section, part
      logical :: yes, no
      character(len=*) :: text
      integer :: answer
      integer, optional :: absent
    end subroutine tagwire_mpi_probe
  end interface
  type triple
    real(4) :: first, second, third
  end type triple
  real(8), target :: array(5, 3)
  type(triple), target :: triples(4)
  type(MPI_Comm) :: world
  integer :: answer
  answer = 99
  world = MPI_COMM_WORLD
  if (.not. world == MPI_COMM_WORLD) stop 'handles of mpi_f08 are not compared'
  if (storage_size(answer) /= 32 .or. storage_size(1.0) /= 32 .or. storage_size(1d0) /= 64 .or. MPI_STATUS_SIZE /= 8) &
    stop 'INTEGER, REAL or DOUBLE PRECISION is not of the usual size'
  call tagwire_mpi_probe(array(1:5:2, 1:3:2), triples%second, .true., .false., 'probe', answer)
  select case (answer)
  case (0)
  case (1, 2)
    print *, 'arrays are passed in a form that the library does not know'
  case (3)
    print *, 'LOGICAL has other values than 1 and 0'
  case (4)
    print *, 'the length of a text is passed in another place'
  case default
    print *, 'an optional argument that is left out is no null address'
  end select
  if (answer /= 0) error stop 1
end program probe
