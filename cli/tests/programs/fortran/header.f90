! mpif.h: messages, statuses, collectives, datatypes, attributes, callbacks, texts, info and windows.
module functions
  implicit none
  integer :: copies = 0, deletes = 0, raised = 0, queried = 0, freed = 0
contains
  subroutine copy(comm, key, state, from, to, flag, ierror)
    include 'mpif.h'
    integer :: comm, key, ierror
    integer(kind=MPI_ADDRESS_KIND) :: state, from, to
    logical :: flag
    copies = copies + 1
    to = from + state
    flag = .true.
    ierror = MPI_SUCCESS
  end subroutine copy

  subroutine delete(comm, key, value, state, ierror)
    include 'mpif.h'
    integer :: comm, key, ierror
    integer(kind=MPI_ADDRESS_KIND) :: value, state
    deletes = deletes + int(value)
    ierror = MPI_SUCCESS
  end subroutine delete

  subroutine sums(from, to, n, datatype)
    include 'mpif.h'
    integer :: n, datatype
    integer :: from(n), to(n)
    if (datatype /= MPI_INTEGER) stop 'the datatype of a reduction is another'
    to = to + from + 100
  end subroutine sums

  subroutine handler(comm, code)
    integer :: comm, code
    raised = raised + 1
  end subroutine handler

  subroutine query(state, status, ierror)
    include 'mpif.h'
    integer(kind=MPI_ADDRESS_KIND) :: state
    integer :: status(MPI_STATUS_SIZE), ierror
    queried = int(state)
    status(MPI_SOURCE) = 5
    call MPI_Status_set_elements(status, MPI_INTEGER, 3, ierror)
    call MPI_Status_set_cancelled(status, .false., ierror)
  end subroutine query

  subroutine frees(state, ierror)
    include 'mpif.h'
    integer(kind=MPI_ADDRESS_KIND) :: state
    integer :: ierror
    freed = int(state)
    ierror = MPI_SUCCESS
  end subroutine frees

  subroutine cancel(state, complete, ierror)
    include 'mpif.h'
    integer(kind=MPI_ADDRESS_KIND) :: state
    logical :: complete
    integer :: ierror
    ierror = MPI_SUCCESS
  end subroutine cancel
end module functions

program header
  use functions
  implicit none
  include 'mpif.h'
  integer :: ierror, rank, ranks, right, left, at, key, op, errhandler, info, win, request, comm, group, length, n, datatype
  integer :: requests(40), statuses(MPI_STATUS_SIZE, 40), status(MPI_STATUS_SIZE), numbers(40), got(40), indices(40)
  integer :: types(3), lengths(3), dims(2), coords(2)
  integer(kind=MPI_ADDRESS_KIND) :: value, places(3), state, lower, extent
  integer :: table(8)
  logical :: flag, periods(2)
  character(len=MPI_MAX_PROCESSOR_NAME) :: name
  character(len=40) :: text
  real(8) :: began

  call MPI_Init(ierror)
  call check(ierror == MPI_SUCCESS, 1)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  right = modulo(rank + 1, ranks)
  left = modulo(rank - 1, ranks)
  began = MPI_Wtime()
  call MPI_Initialized(flag, ierror)
  call check(flag .and. MPI_Wtick() > 0d0, 2)

  ! Messages, with and without a status; arrays of requests of two lengths.
  do at = 1, 40
    call MPI_Irecv(got(at), 1, MPI_INTEGER, left, at, MPI_COMM_WORLD, requests(at), ierror)
  end do
  do at = 1, 40
    numbers(at) = 1000*rank + at
    call MPI_Send(numbers(at), 1, MPI_INTEGER, right, at, MPI_COMM_WORLD, ierror)
  end do
  call MPI_Waitall(20, requests, statuses, ierror)
  call check(all(statuses(MPI_SOURCE, 1:20) == left) .and. statuses(MPI_TAG, 7) == 7, 3)
  call MPI_Waitall(20, requests(21), MPI_STATUSES_IGNORE, ierror)
  call check(all(requests == MPI_REQUEST_NULL) .and. all(got == [(1000*left + at, at = 1, 40)]), 4)
  call MPI_Get_count(statuses(1, 3), MPI_INTEGER, n, ierror)
  call check(n == 1, 5)
  call MPI_Sendrecv(rank, 1, MPI_INTEGER, right, 0, n, 1, MPI_INTEGER, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
  call check(n == left, 6)

  ! Places count from one.
  call MPI_Isend(rank, 1, MPI_INTEGER, rank, 3, MPI_COMM_WORLD, requests(1), ierror)
  call MPI_Irecv(n, 1, MPI_INTEGER, rank, 3, MPI_COMM_WORLD, requests(2), ierror)
  requests(3) = requests(2)
  requests(2) = MPI_REQUEST_NULL
  call MPI_Wait(requests(1), MPI_STATUS_IGNORE, ierror)
  call MPI_Waitany(3, requests, at, status, ierror)
  call check(at == 3 .and. n == rank, 7)
  call MPI_Waitany(3, requests, at, status, ierror)
  call check(at == MPI_UNDEFINED, 8)
  call MPI_Irecv(n, 1, MPI_INTEGER, MPI_PROC_NULL, 3, MPI_COMM_WORLD, requests(2), ierror)
  call MPI_Waitsome(3, requests, n, indices, statuses, ierror)
  call check(n == 1 .and. indices(1) == 2, 9)

  ! Collectives and a function of the program.
  numbers(1:2) = rank
  call MPI_Allreduce(MPI_IN_PLACE, numbers, 2, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
  call check(numbers(2) == ranks*(ranks - 1)/2, 10)
  call MPI_Op_create(sums, .true., op, ierror)
  call MPI_Op_commutative(op, flag, ierror)
  call check(flag, 11)
  call MPI_Allreduce(1, n, 1, MPI_INTEGER, op, MPI_COMM_WORLD, ierror)
  call check(n == ranks + 100*(ranks - 1), 12)
  call MPI_Op_free(op, ierror)
  call check(op == MPI_OP_NULL, 13)

  ! Datatypes: a structure by absolute addresses.
  table = rank
  lengths = [1, 2, 1]
  types = [MPI_INTEGER, MPI_INTEGER, MPI_INTEGER]
  call MPI_Get_address(table(1), places(1), ierror)
  call MPI_Get_address(table(3), places(2), ierror)
  call MPI_Get_address(table(8), places(3), ierror)
  call MPI_Type_create_struct(3, lengths, places, types, datatype, ierror)
  call MPI_Type_commit(datatype, ierror)
  call MPI_Type_get_extent(MPI_DOUBLE_PRECISION, lower, extent, ierror)
  call check(lower == 0 .and. extent == 8, 14)
  call MPI_Bcast(MPI_BOTTOM, 1, datatype, 0, MPI_COMM_WORLD, ierror)
  call check(all(table == [0, rank, 0, 0, rank, rank, rank, 0]), 15)
  call MPI_Type_free(datatype, ierror)

  ! Attributes.
  state = 5
  call MPI_Comm_create_keyval(copy, delete, key, state, ierror)
  value = 30
  call MPI_Comm_set_attr(MPI_COMM_WORLD, key, value, ierror)
  call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierror)
  call MPI_Comm_get_attr(comm, key, value, flag, ierror)
  call check(flag .and. value == 35 .and. copies == 1, 16)
  call MPI_Comm_free(comm, ierror)
  call check(deletes == 35 .and. comm == MPI_COMM_NULL, 17)
  call MPI_Comm_delete_attr(MPI_COMM_WORLD, key, ierror)
  call check(deletes == 65, 18)
  call MPI_Comm_free_keyval(key, ierror)
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, flag, ierror)
  call check(flag .and. value >= 32767, 19)
  call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, key, state, ierror)
  value = -7
  call MPI_Comm_set_attr(MPI_COMM_WORLD, key, value, ierror)
  call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierror)
  value = 0
  call MPI_Comm_get_attr(comm, key, value, flag, ierror)
  call check(flag .and. value == -7, 20)

  ! Error handlers.
  call MPI_Comm_create_errhandler(handler, errhandler, ierror)
  call MPI_Comm_set_errhandler(comm, errhandler, ierror)
  call MPI_Send(n, 1, MPI_INTEGER, ranks, 0, comm, ierror)
  call check(ierror /= MPI_SUCCESS .and. raised == 1, 21)
  call MPI_Error_class(ierror, n, ierror)
  call check(n == MPI_ERR_RANK, 22)
  call MPI_Error_string(n, text, length, ierror)
  call check(length > 4 .and. text(length + 1:) == ' ', 23)

  ! Texts.
  call MPI_Comm_set_name(comm, 'a name   ', ierror)
  text = repeat('x', 40)
  call MPI_Comm_get_name(comm, text, length, ierror)
  call check(text == 'a name' .and. length == 6, 24)
  call MPI_Get_processor_name(name, length, ierror)
  call check(name(length + 1:) == ' ' .and. name(1:1) /= ' ', 25)
  call MPI_Info_create(info, ierror)
  call MPI_Info_set(info, ' key ', '  some value ', ierror)
  length = 0
  call MPI_Info_get_string(info, 'key', length, text, flag, ierror)
  call check(flag .and. length == 10 .and. text == 'a name', 26)
  length = 4
  call MPI_Info_get_string(info, 'key', length, text, flag, ierror)
  call check(flag .and. length == 10 .and. text == 'some', 27)
  length = 40
  call MPI_Info_get_string(info, 'key  ', length, text, flag, ierror)
  call check(flag .and. text == 'some value', 28)
  call MPI_Info_get_nthkey(info, 0, text, ierror)
  call check(text == 'key', 29)
  call MPI_Info_get(info, 'none', 10, text, flag, ierror)
  call check(.not. flag, 30)
  call MPI_Info_free(info, ierror)

  ! LOGICAL in arrays.
  dims = 0
  call MPI_Dims_create(ranks, 2, dims, ierror)
  call MPI_Cart_create(MPI_COMM_WORLD, 2, dims, [.true., .false.], .false., comm, ierror)
  call MPI_Cart_get(comm, 2, dims, periods, coords, ierror)
  call check(periods(1) .and. .not. periods(2), 31)
  call MPI_Cart_sub(comm, [.false., .true.], comm, ierror)
  call MPI_Comm_size(comm, n, ierror)
  call check(n == dims(2), 32)

  ! A graph without weights.
  numbers(1) = left
  indices(1) = right
  call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, numbers, MPI_UNWEIGHTED, 1, indices, MPI_UNWEIGHTED, MPI_INFO_NULL, &
    .false., comm, ierror)
  call MPI_Dist_graph_neighbors_count(comm, n, at, flag, ierror)
  call check(n == 1 .and. at == 1 .and. .not. flag, 33)
  types(1) = MPI_INTEGER
  value = 0
  call MPI_Neighbor_alltoallw(rank, 1, value, types, n, 1, value, types, comm, ierror)
  call check(n == left, 34)

  ! A generalized request.
  state = 77
  call MPI_Grequest_start(query, frees, cancel, state, request, ierror)
  call MPI_Grequest_complete(request, ierror)
  call MPI_Wait(request, status, ierror)
  call MPI_Get_count(status, MPI_INTEGER, n, ierror)
  call check(queried == 77 .and. freed == 77 .and. n == 3 .and. status(MPI_SOURCE) == 5, 35)

  ! Windows.
  table = 0
  value = 32
  call MPI_Win_create(table, value, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win, ierror)
  call MPI_Win_fence(0, win, ierror)
  value = 2
  call MPI_Put(rank + 1, 1, MPI_INTEGER, right, value, 1, MPI_INTEGER, win, ierror)
  call MPI_Win_fence(0, win, ierror)
  call check(table(3) == left + 1, 36)
  call MPI_Win_get_attr(win, MPI_WIN_SIZE, value, flag, ierror)
  call check(flag .and. value == 32, 37)
  call MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, value, flag, ierror)
  call check(flag .and. value == 4, 38)
  call MPI_Win_get_attr(win, MPI_WIN_BASE, value, flag, ierror)
  call MPI_Get_address(table, places(1), ierror)
  call check(flag .and. value == places(1), 39)
  call MPI_Win_free(win, ierror)

  ! Groups: ranges of three.
  call MPI_Comm_group(MPI_COMM_WORLD, group, ierror)
  call MPI_Group_range_incl(group, 1, reshape([0, ranks - 1, 1], [3, 1]), group, ierror)
  call MPI_Group_size(group, n, ierror)
  call check(n == ranks, 40)

  call check(MPI_Wtime() >= began, 41)
  call MPI_Finalize(ierror)
  if (rank == 0) print '(a,i0,a)', 'header: ', ranks, ' ranks'
contains
  subroutine check(good, number)
    logical, intent(in) :: good
    integer, intent(in) :: number
    if (good) return
    print '(a,i0,a,i0)', 'check ', number, ' fails at rank ', rank
    call MPI_Abort(MPI_COMM_WORLD, number, ierror)
  end subroutine check
end program header
