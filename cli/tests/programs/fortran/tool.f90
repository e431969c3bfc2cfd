! A tool in Fortran: it defines names of MPI itself, counts their calls, and calls the same with PMPI.
subroutine MPI_Send_f08ts(buf, count, datatype, dest, tag, comm, ierror)
  use mpi_f08, only: MPI_Datatype, MPI_Comm, PMPI_Send
  implicit none
  type(*), dimension(..), intent(in) :: buf
  integer, intent(in) :: count, dest, tag
  type(MPI_Datatype), intent(in) :: datatype
  type(MPI_Comm), intent(in) :: comm
  integer, optional, intent(out) :: ierror
  integer :: calls(2)
  common /counts/ calls
  calls(1) = calls(1) + 1
  call PMPI_Send(buf, count, datatype, dest, tag, comm, ierror)
end subroutine MPI_Send_f08ts

subroutine MPI_Comm_rank(comm, rank, ierror)
  implicit none
  integer :: comm, rank, ierror
  integer :: calls(2)
  common /counts/ calls
  calls(2) = calls(2) + 1
  call PMPI_Comm_rank(comm, rank, ierror)
end subroutine MPI_Comm_rank

subroutine old(rank)
  implicit none
  include 'mpif.h'
  integer :: rank, ierror
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
end subroutine old

program tool
  use mpi_f08, only: MPI_Init, MPI_Finalize, MPI_Send, MPI_Recv, MPI_INTEGER, MPI_COMM_WORLD, MPI_STATUS_IGNORE
  implicit none
  integer :: rank, from(6), to(3)
  integer :: calls(2)
  common /counts/ calls
  calls = 0
  call MPI_Init()
  call old(rank)
  from = [1, 2, 3, 4, 5, 6]
  to = 0
  if (rank == 0) call MPI_Send(from(1:6:2), 3, MPI_INTEGER, 1, 0, MPI_COMM_WORLD)
  if (rank == 1) call MPI_Recv(to, 3, MPI_INTEGER, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  call MPI_Finalize()
  if (calls(2) /= 1 .or. calls(1) /= merge(1, 0, rank == 0)) error stop 1
  if (rank == 1 .and. any(to /= [1, 3, 5])) error stop 2
  if (rank == 0) print '(a)', 'the tool has seen all'
end program tool
