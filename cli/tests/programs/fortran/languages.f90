! Objects, statuses and attributes that go from Fortran to C and back; the other half is languages.c.
program languages
  use mpi_f08
  use, intrinsic :: iso_c_binding, only: c_int, c_intptr_t
  implicit none
  interface
    ! Sets an attribute in C, and returns its address.
    function c_sets(comm, key) bind(C)
      import
      integer(c_int), value :: comm, key
      integer(c_intptr_t) :: c_sets
    end function c_sets
    ! Returns the number that the attribute points to in C.
    function c_gets(comm, key) bind(C)
      import
      integer(c_int), value :: comm, key
      integer(c_intptr_t) :: c_gets
    end function c_gets
    ! Returns the tag of a status of Fortran, -1 where it is ignored.
    function c_tag(status) bind(C)
      import
      type(MPI_Status) :: status
      integer(c_int) :: c_tag
    end function c_tag
    ! Sends its argument to this rank.
    subroutine c_sends(comm, datatype, value) bind(C)
      import
      integer(c_int), value :: comm, datatype, value
    end subroutine c_sends
  end interface
  integer :: rank, key, n
  integer(kind=MPI_ADDRESS_KIND) :: value, state
  integer(c_intptr_t) :: address
  logical :: flag
  type(MPI_Comm) :: comm
  type(MPI_Datatype) :: datatype
  type(MPI_Request) :: request
  type(MPI_Status) :: status

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_dup(MPI_COMM_WORLD, comm)
  state = 0
  call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, key, state)
  value = 123456789012_MPI_ADDRESS_KIND
  call MPI_Comm_set_attr(comm, key, value)
  call check(c_gets(comm%MPI_VAL, key) == value, 1)
  address = c_sets(comm%MPI_VAL, key)
  call MPI_Comm_get_attr(comm, key, value, flag)
  call check(flag .and. value == address .and. value /= 0, 2)
  ! Both kinds are copied.
  call MPI_Comm_dup(comm, comm)
  value = 0
  call MPI_Comm_get_attr(comm, key, value, flag)
  call check(flag .and. value == address, 3)
  ! A function of the program copies the integer that it gets, and C finds its pointer.
  call MPI_Comm_create_keyval(copies, MPI_COMM_NULL_DELETE_FN, key, state)
  address = c_sets(comm%MPI_VAL, key)
  call MPI_Comm_dup(comm, comm)
  call check(c_gets(comm%MPI_VAL, key) == 42, 6)
  value = 4712
  call MPI_Comm_set_attr(comm, key, value)
  call MPI_Comm_dup(comm, comm)
  call check(c_gets(comm%MPI_VAL, key) == 4712, 7)
  call MPI_Type_contiguous(2, MPI_INTEGER, datatype)
  call MPI_Type_commit(datatype)
  n = 0
  call MPI_Irecv(n, 1, MPI_INTEGER, rank, 17, comm, request)
  call c_sends(comm%MPI_VAL, MPI_INTEGER%MPI_VAL, 4711)
  call MPI_Wait(request, status)
  call check(n == 4711 .and. c_tag(status) == 17, 4)
  call check(c_tag(MPI_STATUS_IGNORE) == -1, 5)
  call MPI_Type_free(datatype)
  call MPI_Finalize()
  if (rank == 0) print '(a)', 'languages agree'
contains
  subroutine copies(oldcomm, comm_keyval, extra_state, attribute_val_in, attribute_val_out, flag, ierror)
    type(MPI_Comm) :: oldcomm
    integer :: comm_keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: extra_state, attribute_val_in, attribute_val_out
    logical :: flag
    attribute_val_out = attribute_val_in
    flag = .true.
    ierror = MPI_SUCCESS
  end subroutine copies

  subroutine check(good, number)
    logical, intent(in) :: good
    integer, intent(in) :: number
    if (good) return
    print '(a,i0)', 'fails: check ', number
    call MPI_Abort(MPI_COMM_WORLD, number)
  end subroutine check
end program languages
