/* A rod that cools: ghost cells by nonblocking messages, the end by a reduction, the result gathered and compared with one
   rank's. */
#include "check.h"
#include <math.h>

enum { CELLS = 96, STEPS = 400 };

static void step(const double *old, double *new, int count) {
    for (int i = 1; i <= count; i++) new[i] = old[i] + 0.25 * (old[i - 1] - 2 * old[i] + old[i + 1]);
}

int main(int argc, char **argv) {
    int rank, size;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    int count = CELLS / size + (rank < CELLS % size), start = 0;
    OK(MPI_Exscan(&count, &start, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    if (rank == 0) start = 0;
    double *cells = calloc(count + 2, sizeof(double)), *next = calloc(count + 2, sizeof(double));
    for (int i = 0; i < count; i++) cells[i + 1] = start + i == CELLS / 3 ? 1000 : start + i;
    int left = rank > 0 ? rank - 1 : MPI_PROC_NULL, right = rank + 1 < size ? rank + 1 : MPI_PROC_NULL;
    double change = 0;
    for (int n = 0; n < STEPS; n++) {
        MPI_Request requests[4];
        OK(MPI_Irecv(&cells[0], 1, MPI_DOUBLE, left, 0, MPI_COMM_WORLD, &requests[0]));
        OK(MPI_Irecv(&cells[count + 1], 1, MPI_DOUBLE, right, 1, MPI_COMM_WORLD, &requests[1]));
        OK(MPI_Isend(&cells[1], 1, MPI_DOUBLE, left, 1, MPI_COMM_WORLD, &requests[2]));
        OK(MPI_Isend(&cells[count], 1, MPI_DOUBLE, right, 0, MPI_COMM_WORLD, &requests[3]));
        OK(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE));
        step(cells, next, count);
        double own = 0;
        for (int i = 1; i <= count; i++) own = fmax(own, fabs(next[i] - cells[i]));
        OK(MPI_Allreduce(&own, &change, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD));
        double *old = cells;
        cells = next;
        next = old;
    }
    int counts[64], places[64];
    double all[CELLS + 2];
    OK(MPI_Gather(&count, 1, MPI_INT, counts, 1, MPI_INT, 0, MPI_COMM_WORLD));
    OK(MPI_Gather(&start, 1, MPI_INT, places, 1, MPI_INT, 0, MPI_COMM_WORLD));
    OK(MPI_Gatherv(cells + 1, count, MPI_DOUBLE, all, counts, places, MPI_DOUBLE, 0, MPI_COMM_WORLD));
    if (rank == 0) {
        double one[CELLS + 2] = {0}, other[CELLS + 2] = {0};
        for (int i = 0; i < CELLS; i++) one[i + 1] = i == CELLS / 3 ? 1000 : i;
        for (int n = 0; n < STEPS; n++) {
            step(one, other, CELLS);
            memcpy(one, other, sizeof one);
        }
        for (int i = 0; i < CELLS; i++) CHECK(all[i] == one[i + 1]);
        printf("heat: %d ranks, last change %.6f, good\n", size, change);
    }
    free(cells);
    free(next);
    OK(MPI_Finalize());
    return 0;
}
