! What MPI-3.0 has removed, as programs with mpif.h have it: addresses and extents are default integers.
program removed
  implicit none
  include 'mpif.h'
  integer :: ierror, rank, ranks, left, datatype, errhandler, found, extent, lower, upper, sent(4), got(4)
  integer :: types(2), lengths(2), places(2)
  integer, target :: variable
  integer(kind=MPI_ADDRESS_KIND) :: address

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  left = modulo(rank - 1, ranks)

  ! The first and the last two of four integers.
  types = [MPI_INTEGER, MPI_INTEGER]
  lengths = [1, 2]
  places = [0, 8]
  call MPI_Type_struct(2, lengths, places, types, datatype, ierror)
  call MPI_Type_commit(datatype, ierror)
  call MPI_Type_extent(datatype, extent, ierror)
  call check(extent == 16, 1)
  sent = [(10*rank + lower, lower = 1, 4)]
  got = -1
  call MPI_Sendrecv(sent, 1, datatype, modulo(rank + 1, ranks), 3, got, 1, datatype, left, 3, MPI_COMM_WORLD, &
      MPI_STATUS_IGNORE, ierror)
  call check(all(got == [10*left + 1, -1, 10*left + 3, 10*left + 4]), 2)
  call MPI_Type_free(datatype, ierror)

  call MPI_Type_hvector(3, 1, 16, MPI_DOUBLE_PRECISION, datatype, ierror)
  call MPI_Type_ub(datatype, upper, ierror)
  call check(upper == 40, 3)
  call MPI_Type_free(datatype, ierror)
  places = [8, 24]
  call MPI_Type_hindexed(2, lengths, places, MPI_DOUBLE_PRECISION, datatype, ierror)
  call MPI_Type_lb(datatype, lower, ierror)
  call MPI_Type_ub(datatype, upper, ierror)
  call check(lower == 8 .and. upper == 40, 4)
  call MPI_Type_free(datatype, ierror)

  call MPI_Errhandler_set(MPI_COMM_WORLD, MPI_ERRORS_RETURN, ierror)
  call MPI_Errhandler_set(MPI_COMM_SELF, MPI_ERRORS_RETURN, ierror)
  call MPI_Errhandler_get(MPI_COMM_WORLD, found, ierror)
  call check(found == MPI_ERRORS_RETURN, 5)
  call MPI_Errhandler_create(handler, errhandler, ierror)
  call check(ierror == MPI_SUCCESS .and. errhandler /= MPI_ERRHANDLER_NULL, 6)
  call MPI_Errhandler_free(errhandler, ierror)

  ! An address that has no room in an integer is an error.
  upper = -5
  call MPI_Address(variable, upper, ierror)
  call MPI_Get_address(variable, address, lower)
  if (address > huge(upper)) then
    call check(ierror == MPI_ERR_ARG .and. upper == -5, 7)
  else
    call check(ierror == MPI_SUCCESS .and. upper == address, 8)
  end if
  call MPI_Address(MPI_BOTTOM, upper, ierror)
  call check(ierror == MPI_SUCCESS .and. upper == 0, 9)

  call MPI_Barrier(MPI_COMM_WORLD, ierror)
  if (rank == 0) print '(a, i0, a)', 'removed: ', ranks, ' ranks'
  call MPI_Finalize(ierror)

contains

  subroutine handler(comm, code)
    integer :: comm, code
    if (comm /= MPI_COMM_WORLD) print *, code
  end subroutine handler

  subroutine check(good, number)
    logical :: good
    integer :: number, code
    if (good) return
    print '(a, i0)', 'removed: not good: ', number
    call MPI_Abort(MPI_COMM_WORLD, number, code)
  end subroutine check
end program removed
