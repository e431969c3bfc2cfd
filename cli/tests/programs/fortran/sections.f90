! mpi_f08: sections of arrays, large counts, types of handles, optional error codes, and functions of the program.
module functions
  use mpi_f08
  implicit none
  type point
    integer :: x
  end type point
  type, extends(point) :: solid
    integer :: y, z
  end type solid
contains
  subroutine largest(from, to, n, datatype)
    use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
    type(c_ptr), value :: from, to
    integer :: n
    type(MPI_Datatype) :: datatype
    integer, pointer :: one(:), other(:)
    if (datatype /= MPI_INTEGER) stop 'the datatype of a reduction is another'
    call c_f_pointer(from, one, [n])
    call c_f_pointer(to, other, [n])
    other = max(one, other)
  end subroutine largest

  subroutine sums(from, to, n, datatype)
    use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
    type(c_ptr), value :: from, to
    integer(kind=MPI_COUNT_KIND) :: n
    type(MPI_Datatype) :: datatype
    integer, pointer :: one(:), other(:)
    if (datatype /= MPI_INTEGER) stop 'the datatype of a reduction is another'
    call c_f_pointer(from, one, [n])
    call c_f_pointer(to, other, [n])
    other = one + other
  end subroutine sums
end module functions

program sections
  use functions
  use, intrinsic :: iso_c_binding, only: c_associated, c_f_pointer, c_loc, c_ptr
  implicit none
  type part
    sequence
    real(8) :: first
    integer :: second, third
  end type part
  type(MPI_Comm) :: comm
  type(MPI_Status) :: status
  type(MPI_Request) :: requests(2)
  type(MPI_Op) :: op
  type(MPI_Win) :: win
  type(MPI_Datatype) :: pair
  type(MPI_Info) :: info
  type(c_ptr) :: base
  type(part) :: parts(6)
  integer, target :: from(8, 6, 4), to(8, 6, 4)
  integer, pointer :: view(:, :), shared(:)
  integer, allocatable :: many(:)
  character(len=3) :: words(5), heard(5)
  integer :: rank, ranks, right, left, i, n, ierror, flat(200), f_status(MPI_STATUS_SIZE)
  integer(kind=MPI_COUNT_KIND) :: large
  integer(kind=MPI_ADDRESS_KIND) :: bytes
  logical :: flag

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  comm = MPI_COMM_WORLD
  call check(comm == MPI_COMM_WORLD .and. comm /= MPI_COMM_SELF, 1)
  right = modulo(rank + 1, ranks)
  left = modulo(rank - 1, ranks)
  from = reshape([(rank*1000 + i, i = 1, 192)], [8, 6, 4])

  ! A section that is sent whole arrives as its elements; a section takes elements.
  call exchange
  call check(all(flat(1:24) == reshape(from(1:8:2, 2:6:2, 1:3:2), [24]) + (left - rank)*1000), 2)
  to = 0
  call MPI_Sendrecv([(i, i = 1, 24)], 24, MPI_INTEGER, right, 1, to(8:1:-2, 1:5:2, 2:4:2), 24, MPI_INTEGER, left, 1, comm, status)
  call check(all(reshape(to(8:1:-2, 1:5:2, 2:4:2), [24]) == [(i, i = 1, 24)]) .and. sum(to) == 300, 3)
  call check(status%MPI_SOURCE == left .and. status%MPI_TAG == 1, 4)

  ! Fewer elements than the section has: whole rows and a part of one.
  to = 0
  call MPI_Sendrecv([(i, i = 1, 17)], 17, MPI_INTEGER, right, 2, to(1:8:2, 2:6:2, 1:3:2), 17, MPI_INTEGER, left, 2, comm, &
    MPI_STATUS_IGNORE)
  flat(1:24) = reshape(to(1:8:2, 2:6:2, 1:3:2), [24])
  call check(all(flat(1:17) == [(i, i = 1, 17)]) .and. all(flat(18:24) == 0) .and. sum(to) == 153, 5)

  ! Nonblocking, by a pointer to a section.
  view => to(2:8:3, 1, 1:4)
  to = 0
  call MPI_Irecv(view, 12, MPI_INTEGER, left, 3, comm, requests(1))
  call MPI_Isend(from(2:8:3, 1, 1:4), 12, MPI_INTEGER, right, 3, comm, requests(2))
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
  call check(all(view == from(2:8:3, 1, 1:4) + (left - rank)*1000), 6)

  ! Components, characters, scalars.
  parts%second = [(rank*10 + i, i = 1, 6)]
  parts%third = -1
  call MPI_Bcast(parts(1:6:2)%second, 3, MPI_INTEGER, 0, comm)
  call check(all(parts%second == [1, rank*10 + 2, 3, rank*10 + 4, 5, rank*10 + 6]) .and. all(parts%third == -1), 7)
  words = [character(len=3) :: 'one', 'two', 'thr', 'fou', 'fiv']
  heard = '...'
  call MPI_Sendrecv(words(1:5:2), 9, MPI_CHARACTER, right, 4, heard(5:1:-2), 9, MPI_CHARACTER, left, 4, comm, MPI_STATUS_IGNORE)
  call check(all(heard == [character(len=3) :: 'fiv', '...', 'thr', '...', 'one']), 8)
  n = rank
  call MPI_Bcast(n, 1, MPI_INTEGER, ranks - 1, comm)
  call check(n == ranks - 1, 9)

  ! What cannot be a section is an error, and touches nothing.
  call MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN)
  call MPI_Ireduce(from(1:8:2, 1, 1), to, 4, MPI_INTEGER, MPI_SUM, 0, comm, requests(1), ierror)
  call MPI_Error_class(ierror, n)
  call check(n == MPI_ERR_BUFFER, 10)
  call MPI_Send(from(1:8:2, 1, 1), 5, MPI_INTEGER, right, 5, comm, ierror)
  call MPI_Error_class(ierror, n)
  call check(n == MPI_ERR_BUFFER, 11)
  call MPI_Type_contiguous(3, MPI_INTEGER, pair)
  call MPI_Type_commit(pair)
  call MPI_Send(from(1:8:2, 1, 1), 1, pair, right, 5, comm, ierror)
  call MPI_Error_class(ierror, n)
  call check(n == MPI_ERR_BUFFER, 12)
  call MPI_Type_free(pair)
  call check(pair == MPI_DATATYPE_NULL, 13)

  ! Nor can the blocks of ranks lie in one after the call. Where the buffer has no meaning, any may be.
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)
  call MPI_Igather(rank, 1, MPI_INTEGER, to(1:8:2, 1, 1), 1, MPI_INTEGER, 0, MPI_COMM_SELF, requests(1), ierror)
  call fails(MPI_ERR_BUFFER, 24)
  call MPI_Iscatter(to(1:8:2, 1, 1), 1, MPI_INTEGER, n, 1, MPI_INTEGER, 0, MPI_COMM_SELF, requests(1), ierror)
  call fails(MPI_ERR_BUFFER, 25)
  call MPI_Ialltoall(from(1:8:2, 1, 1), 1, MPI_INTEGER, to, 1, MPI_INTEGER, MPI_COMM_SELF, requests(1), ierror)
  call fails(MPI_ERR_BUFFER, 26)
  call copies
  call without_elements
  call polymorphic([(10*rank + i, i = 1, 6)], [(solid(i, 10*i, 100*i), i = 1, 4)])
  call of_characters([character(len=3) :: 'one', 'two', 'thr', 'fou', 'fiv'])
  to = -1
  if (rank == 0) then
    call MPI_Gather(from(1:3:2, 1, 1), 2, MPI_INTEGER, flat, 2, MPI_INTEGER, 0, comm)
    call MPI_Scatter(flat, 2, MPI_INTEGER, to(1:3:2, 1, 1), 2, MPI_INTEGER, 0, comm)
  else
    call MPI_Gather(from(1:3:2, 1, 1), 2, MPI_INTEGER, to(1:8:2, 1, 1), -1, MPI_DATATYPE_NULL, 0, comm)
    call MPI_Scatter(to(1:8:2, 1, 1), -1, MPI_DATATYPE_NULL, to(1:3:2, 1, 1), 2, MPI_INTEGER, 0, comm)
  end if
  call check(all(to(1:3, 1, 1) == [from(1, 1, 1), -1, from(3, 1, 1)]) .and. all(to(4:8, 1, 1) == -1), 27)

  ! A call that fails counts no places from one.
  requests(1)%MPI_VAL = 123456
  flat = 7
  n = 200
  call MPI_Testsome(1, requests, n, flat, MPI_STATUSES_IGNORE, ierror)
  call fails(MPI_ERR_REQUEST, 28)
  call check(n == MPI_UNDEFINED .and. all(flat == 7), 29)
  n = 7
  call MPI_Waitany(1, requests, n, status, ierror)
  call fails(MPI_ERR_REQUEST, 30)
  call check(n == MPI_UNDEFINED, 31)

  ! Large counts have the same names.
  large = 4
  allocate (many(4), source=rank)
  call MPI_Sendrecv(many, large, MPI_INTEGER, right, 6, flat, large, MPI_INTEGER, left, 6, comm, status)
  call MPI_Get_count(status, MPI_INTEGER, large)
  call check(large == 4 .and. flat(4) == left, 14)
  call MPI_Type_vector(2_MPI_COUNT_KIND, 1_MPI_COUNT_KIND, 2_MPI_COUNT_KIND, MPI_INTEGER, pair)
  call MPI_Type_size(pair, large)
  call check(large == 8, 15)

  ! Functions.
  call MPI_Op_create(largest, .true., op)
  call MPI_Allreduce(rank, n, 1, MPI_INTEGER, op, comm)
  call check(n == ranks - 1, 16)
  call MPI_Op_create_c(sums, .true., op)
  call MPI_Allreduce(1, n, 1, MPI_INTEGER, op, comm)
  call check(n == ranks, 17)

  ! Memory by addresses, and windows.
  bytes = 16
  call MPI_Win_allocate(bytes, 4, MPI_INFO_NULL, comm, base, win)
  call c_f_pointer(base, shared, [4])
  shared = 0
  call MPI_Win_fence(0, win)
  bytes = 0
  call MPI_Put(from(1:7:2, 1, 1), 4, MPI_INTEGER, right, bytes, 4, MPI_INTEGER, win)
  call MPI_Win_fence(0, win)
  call check(all(shared == from(1:7:2, 1, 1) + (left - rank)*1000), 18)
  call MPI_Win_free(win)
  call check(win == MPI_WIN_NULL, 19)

  ! Keywords, statuses of both forms, sizes.
  call MPI_Info_create(info=info, ierror=ierror)
  call MPI_Info_set(info, key='key', value='value')
  call MPI_Info_get_nkeys(info, n)
  call check(ierror == MPI_SUCCESS .and. n == 1, 20)
  status%MPI_TAG = 99
  call MPI_Status_f082f(status, f_status)
  status%MPI_TAG = 0
  call MPI_Status_f2f08(f_status, status)
  call check(status%MPI_TAG == 99 .and. f_status(MPI_TAG) == 99, 21)
  call MPI_Sizeof(parts, n)
  call check(n == 16, 22)
  call MPI_Test_cancelled(status, flag)
  call check(.not. flag .and. MPI_SUBARRAYS_SUPPORTED .and. MPI_Aint_add(4_MPI_ADDRESS_KIND, 2_MPI_ADDRESS_KIND) == 6, 23)

  ! What stands for a buffer of the library comes back as it was given.
  call MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0)
  call MPI_Buffer_detach(base, i)
  call check(c_associated(base, c_loc(MPI_BUFFER_AUTOMATIC)), 60)

  call MPI_Finalize(ierror)
  if (rank == 0) print '(a,i0,a)', 'sections: ', ranks, ' ranks'
contains
  ! Calls that are over when they return, and split accesses to a file, take sections where others want them contiguous.
  subroutine copies
    integer :: grid(6, 5), copy(6, 5), k
    character(len=200) :: name
    type(MPI_File) :: file
    grid = reshape([(100*rank + k, k = 1, 30)], [6, 5])
    copy = -1
    call MPI_Allreduce(grid(2, 1:5:2), copy(6:2:-2, 4), 3, MPI_INTEGER, MPI_SUM, comm)
    call check(all(copy(6:2:-2, 4) == ranks*[2, 14, 26] + 50*ranks*(ranks - 1)) .and. count(copy /= -1) == 3, 32)
    copy = grid
    call MPI_Scan(MPI_IN_PLACE, copy(3, ::2), 3, MPI_INTEGER, MPI_SUM, comm)
    call check(all(copy(3, ::2) == (rank + 1)*[3, 15, 27] + 50*rank*(rank + 1)) .and. all(copy(:, 2) == grid(:, 2)), 33)
    copy = -1
    call MPI_Gather(rank, 1, MPI_INTEGER, copy(2, 1:ranks), 1, MPI_INTEGER, ranks - 1, comm)
    if (rank == ranks - 1) call check(all(copy(2, 1:ranks) == [(k, k = 0, ranks - 1)]), 34)
    call check(count(copy /= -1) == merge(ranks, 0, rank == ranks - 1), 35)
    copy = -1
    call MPI_Alltoallv(grid(4, 1:ranks), [(1, k = 1, ranks)], [(k, k = 0, ranks - 1)], MPI_INTEGER, &
      copy(1:5:2, 3), [(1, k = 1, ranks)], [(k, k = 0, ranks - 1)], MPI_INTEGER, comm)
    call check(all(copy(1:2*ranks:2, 3) == [(100*k + 4 + 6*rank, k = 0, ranks - 1)]) .and. count(copy /= -1) == ranks, 36)

    call get_command_argument(1, name)
    call MPI_File_open(comm, name, MPI_MODE_CREATE + MPI_MODE_RDWR + MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, file)
    call MPI_File_write_at_all_begin(file, 12_MPI_OFFSET_KIND*rank, grid(5, ::2), 3, MPI_INTEGER, ierror)
    call check(ierror == MPI_SUCCESS, 37)
    call MPI_File_write_at_all_end(file, grid(5, ::2), status, ierror)
    call check(ierror == MPI_SUCCESS, 38)
    copy = -1
    call MPI_File_read_at_all_begin(file, 12_MPI_OFFSET_KIND*rank, copy(1, 5:1:-2), 3, MPI_INTEGER)
    call MPI_File_read_at_all_end(file, copy(1, 5:1:-2), status, ierror)
    call check(ierror == MPI_SUCCESS .and. all(copy(1, 5:1:-2) == grid(5, ::2)) .and. count(copy /= -1) == 3, 39)
    call MPI_File_close(file, ierror)
    call check(ierror == MPI_SUCCESS, 40)
  end subroutine copies

  ! A strided section without elements, behind a dimension with many: none is read or written.
  subroutine without_elements
    integer, allocatable :: none(:, :), got(:, :)
    integer :: zeros(ranks)
    allocate (none(2000000, 0), got(2000000, 0))
    zeros = 0
    call MPI_Allreduce(none(1::2, :), got(1::2, :), 0, MPI_INTEGER, MPI_SUM, comm, ierror)
    call check(ierror == MPI_SUCCESS, 61)
    call MPI_Gather(none(1::2, :), 0, MPI_INTEGER, got(1::2, :), 0, MPI_INTEGER, 0, comm, ierror)
    call check(ierror == MPI_SUCCESS, 62)
    call MPI_Alltoallv(none(1::2, :), zeros, zeros, MPI_INTEGER, got(1::2, :), zeros, zeros, MPI_INTEGER, comm, ierror)
    call check(ierror == MPI_SUCCESS, 63)
    call MPI_Iallreduce(none(1::2, :), got(1::2, :), 0, MPI_INTEGER, MPI_SUM, comm, requests(1), ierror)
    call check(ierror == MPI_SUCCESS, 64)
    call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
  end subroutine without_elements

  ! Elements are as long as what the arrays hold.
  subroutine polymorphic(numbers, points)
    class(*), intent(in) :: numbers(:)
    class(point), intent(in) :: points(:)
    class(*), allocatable :: copy(:)
    integer :: got(6)
    call MPI_Sendrecv(numbers, 6, MPI_INTEGER, right, 7, got, 6, MPI_INTEGER, left, 7, comm, MPI_STATUS_IGNORE)
    call check(all(got == [(10*left + i, i = 1, 6)]), 41)
    call MPI_Sendrecv(numbers(6:1:-2), 3, MPI_INTEGER, right, 7, got, 6, MPI_INTEGER, left, 7, comm, MPI_STATUS_IGNORE)
    call check(all(got(1:3) == 10*left + [6, 4, 2]), 42)
    allocate (copy(6), source=[(-1, i = 1, 6)])
    call MPI_Sendrecv(numbers, 3, MPI_INTEGER, right, 7, copy(2::2), 3, MPI_INTEGER, left, 7, comm, MPI_STATUS_IGNORE)
    select type (copy)
    type is (integer)
      call check(all(copy == [-1, 10*left + 1, -1, 10*left + 2, -1, 10*left + 3]), 43)
    end select
    call MPI_Allreduce(numbers(1::2), copy(1::2), 3, MPI_INTEGER, MPI_MAX, comm)
    select type (copy)
    type is (integer)
      call check(all(copy(1::2) == 10*(ranks - 1) + [1, 3, 5]) .and. all(copy(2::2) == 10*left + [1, 2, 3]), 44)
    end select
    call MPI_Sendrecv(points, 6, MPI_INTEGER, right, 7, got, 6, MPI_INTEGER, left, 7, comm, MPI_STATUS_IGNORE)
    call check(all(got == [1, 10, 100, 2, 20, 200]), 45)
    call MPI_Sendrecv(points(2::2), 6, MPI_INTEGER, right, 7, got, 6, MPI_INTEGER, left, 7, comm, MPI_STATUS_IGNORE)
    call check(all(got == [2, 20, 200, 4, 40, 400]), 46)
    call MPI_Sizeof(points, n)
    call check(n == 12, 47)
  end subroutine polymorphic

  ! The compiler passes no length of these: one behind the other they need none.
  subroutine of_characters(words)
    class(*), intent(in) :: words(:)
    character(len=3) :: got(5)
    call MPI_Sendrecv(words, 15, MPI_CHARACTER, right, 8, got, 15, MPI_CHARACTER, left, 8, comm, MPI_STATUS_IGNORE)
    call check(all(got == [character(len=3) :: 'one', 'two', 'thr', 'fou', 'fiv']), 48)
    call MPI_Send(words(1::2), 3, MPI_CHARACTER, right, 8, comm, ierror)
    call fails(MPI_ERR_BUFFER, 49)
    call MPI_Allgather(words(1::2), 3, MPI_CHARACTER, got, 3, MPI_CHARACTER, MPI_COMM_SELF, ierror)
    call fails(MPI_ERR_BUFFER, 50)
    call MPI_Reduce_scatter_block(words(1::2), got, 3, MPI_INTEGER8, MPI_SUM, MPI_COMM_SELF, ierror)
    call fails(MPI_ERR_BUFFER, 51)
  end subroutine of_characters

  subroutine exchange
    call MPI_Sendrecv(from(1:8:2, 2:6:2, 1:3:2), 24, MPI_INTEGER, right, 0, flat, 24, MPI_INTEGER, left, 0, comm, MPI_STATUS_IGNORE)
  end subroutine exchange

  subroutine fails(wanted, number)
    integer, intent(in) :: wanted, number
    integer :: class
    call MPI_Error_class(ierror, class)
    call check(class == wanted, number)
  end subroutine fails

  subroutine check(good, number)
    logical, intent(in) :: good
    integer, intent(in) :: number
    if (good) return
    print '(a,i0,a,i0)', 'check ', number, ' fails at rank ', rank
    call MPI_Abort(comm, number)
  end subroutine check
end program sections
