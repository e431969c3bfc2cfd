/* Prints into a pipe, and ends the job: the argument says how. */
#include "check.h"

static void last_words(void) { puts("written at the exit"); }

int main(int argc, char **argv) {
    int rank;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    atexit(last_words);
    if (rank == 1) puts("printed by another");
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) {
        puts("bad input: giving up");
        if (!strcmp(argv[1], "error")) MPI_Send(NULL, 0, MPI_INT, 99, 0, MPI_COMM_WORLD);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    for (;;) MPI_Barrier(MPI_COMM_SELF);
}
