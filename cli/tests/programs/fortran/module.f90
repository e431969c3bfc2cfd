! The module mpi: explicit interfaces with buffers of any type, handles as integers, addresses as integers and as C_PTR; PMPI.
program module_mpi
  use mpi
  use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
  implicit none
  integer :: rank, ranks, ierror, n, comm, key, win, status(MPI_STATUS_SIZE)
  integer :: grid(4, 3)
  real(8) :: sums(2), mine(2)
  complex :: z(3)
  character(len=5) :: word
  logical :: flag
  type(MPI_Status) :: status_2008
  type(MPI_Comm) :: handle
  type(c_ptr) :: base
  integer, pointer :: memory(:)
  integer(kind=MPI_ADDRESS_KIND) :: address, length

  call MPI_Init_thread(MPI_THREAD_FUNNELED, n, ierror)
  if (ierror /= MPI_SUCCESS .or. n /= MPI_THREAD_FUNNELED) stop 1
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call PMPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  mine = [1d0*rank, 2d0]
  call MPI_Allreduce(mine, sums, 2, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierror)
  call check(sums(2) == 2d0*ranks, 1)
  z = (0, 0)
  if (rank == 0) z = (1, 2)
  call PMPI_Bcast(z, 3, MPI_COMPLEX, 0, MPI_COMM_WORLD, ierror)
  call check(all(z == (1, 2)), 2)
  word = 'no'
  if (rank == 0) word = 'hello'
  call MPI_Bcast(word, 5, MPI_CHARACTER, 0, MPI_COMM_WORLD, ierror)
  call check(word == 'hello', 3)

  ! The compiler passes a copy of a section, and copies it back.
  grid = rank
  call MPI_Bcast(grid(2, :), 3, MPI_INTEGER, 0, MPI_COMM_WORLD, ierror)
  call check(all(grid(2, :) == 0) .and. all(grid(3, :) == rank), 4)

  call MPI_Alloc_mem(8_MPI_ADDRESS_KIND, MPI_INFO_NULL, base, ierror)
  call c_f_pointer(base, memory, [2])
  memory = 5
  call MPI_Free_mem(memory, ierror)
  call MPI_Alloc_mem(8_MPI_ADDRESS_KIND, MPI_INFO_NULL, address, ierror)
  call check(ierror == MPI_SUCCESS .and. address /= 0, 5)
  length = 8
  call MPI_Win_allocate(length, 4, MPI_INFO_NULL, MPI_COMM_WORLD, base, win, ierror)
  call MPI_Win_shared_query(win, rank, length, n, base, ierror)
  call MPI_Win_free(win, ierror)

  ! Attributes of the old names are default integers.
  call MPI_Keyval_create(MPI_DUP_FN, MPI_NULL_DELETE_FN, key, 0, ierror)
  call MPI_Attr_put(MPI_COMM_WORLD, key, -12, ierror)
  call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierror)
  call MPI_Attr_get(comm, key, n, flag, ierror)
  call check(flag .and. n == -12, 6)
  handle = MPI_Comm(comm)
  call check(handle%MPI_VAL == comm .and. handle == MPI_Comm(comm), 7)

  call MPI_Sendrecv(rank, 1, MPI_INTEGER, rank, 8, n, 1, MPI_INTEGER, rank, 8, comm, status, ierror)
  call MPI_Status_f2f08(status, status_2008, ierror)
  call check(status_2008%MPI_TAG == 8, 8)
  call MPI_Sizeof(z, n, ierror)
  call check(n == 8, 9)
  call MPI_Comm_free(comm, ierror)
  call MPI_Finalize(ierror)
  if (rank == 0) print '(a,i0,a)', 'module: ', ranks, ' ranks'
contains
  subroutine check(good, number)
    logical, intent(in) :: good
    integer, intent(in) :: number
    if (good) return
    print '(a,i0,a,i0)', 'check ', number, ' fails at rank ', rank
    call MPI_Abort(MPI_COMM_WORLD, number, ierror)
  end subroutine check
end program module_mpi
