! The clock in a program whose REAL and DOUBLE PRECISION have twice their bytes: the library's numbers have 8.
program reals
  implicit none
  include 'mpif.h'
  integer :: ierror, code
  real :: began
  call MPI_Init(ierror)
  began = MPI_Wtime()
  if (kind(began) /= 8 .or. kind(MPI_Wtime()) /= 8 .or. kind(PMPI_Wtick()) /= 8) call MPI_Abort(MPI_COMM_WORLD, 1, code)
  if (MPI_Wtick() < 1e-12 .or. MPI_Wtick() > 1 .or. MPI_Wtime() < began) call MPI_Abort(MPI_COMM_WORLD, 2, code)
  call MPI_Finalize(ierror)
  print '(a)', 'reals: good'
end program reals
