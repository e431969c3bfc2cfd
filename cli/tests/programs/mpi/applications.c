/* Several programs, one world: each rank knows the number of its program. */
#include "check.h"

int main(int argc, char **argv) {
    int rank, size, found, *number;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &number, &found));
    int own = found ? *number : -1, all[64];
    OK(MPI_Gather(&own, 1, MPI_INT, all, 1, MPI_INT, 0, MPI_COMM_WORLD));
    if (rank == 0) {
        printf("applications:");
        for (int i = 0; i < size; i++) printf(" %d", all[i]);
        printf("\n");
    }
    return MPI_Finalize();
}
