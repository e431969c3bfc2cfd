! Rank 0 says the sum of 1 over all ranks.
program sum_of_ones
  use mpi_f08
  implicit none
  integer :: rank, ranks
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Allreduce(1, ranks, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  if (rank == 0) print '(a, i0)', 'sum: ', ranks
  call MPI_Finalize()
end program sum_of_ones
