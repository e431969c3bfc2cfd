/* Ranks that wait for each other, and what SIGUSR1 does: the argument says which. */
#include "check.h"

#include <signal.h>
#include <unistd.h>

static volatile sig_atomic_t own;
static void handler(int number) { own = number; }

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    int rank, numbers[16] = {0};
    if (!strcmp(how, "own")) signal(SIGUSR1, handler);
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    if (!strcmp(how, "own")) {
        /* The program's handler stays its own. */
        raise(SIGUSR1);
        CHECK(own == SIGUSR1);
    }
    printf("rank %d is process %ld\n", rank, (long)getpid());
    fflush(stdout);
    if (!strcmp(how, "hang")) OK(MPI_Recv(numbers, 16, MPI_INT, 1 - rank, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    if (!strcmp(how, "mixed")) {
        /* One sends on a communicator with a name, the other is in a collective of all, and has a nonblocking one of the first. */
        MPI_Comm ocean;
        MPI_Request request;
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &ocean));
        OK(MPI_Comm_set_name(ocean, "ocean"));
        if (rank == 0) OK(MPI_Ssend(numbers, 16, MPI_INT, 1, 9, ocean));
        OK(MPI_Iallreduce(MPI_IN_PLACE, numbers, 16, MPI_INT, MPI_SUM, ocean, &request));
        OK(MPI_Allreduce(MPI_IN_PLACE, numbers, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    }
    OK(MPI_Finalize());
    /* Nobody is asked any more: the signal does what it does by default. */
    if (!strcmp(how, "after")) raise(SIGUSR1);
    return 0;
}
