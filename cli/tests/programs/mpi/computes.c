/* Receives long messages while it computes: between MPI_Irecv and MPI_Wait rank 0 calls nothing, and looks at its memory. Says how
   many messages were there before the wait.

   computes ROUNDS NAPS [alloc]: a rank that finds nothing computes for so many naps of a millisecond at most; alloc: memory is
   the library's. */
#include "check.h"
#include <time.h>

enum { LENGTH = 1 << 17, GO = 1, DATA = 2 };

static int value_of(int round, int i) { return (round + 1) * 1000003 + i; }

/* What MPI has not written yet: the compiler is to read it each time. */
static int is_there(const volatile int *data, int round) {
    for (int i = LENGTH - 1; i >= 0; i--)
        if (data[i] != value_of(round, i)) return 0;
    return 1;
}

static int receive(int *data, int round, long naps) {
    const struct timespec nap = {0, 1000000};
    MPI_Request request;
    int filled = 0;
    memset(data, 0, LENGTH * sizeof *data);
    OK(MPI_Irecv(data, LENGTH, MPI_INT, 1, DATA, MPI_COMM_WORLD, &request));
    OK(MPI_Send(NULL, 0, MPI_INT, 1, GO, MPI_COMM_WORLD));
    for (long i = 0; i < naps && !(filled = is_there(data, round)); i++) nanosleep(&nap, NULL);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(is_there(data, round));
    return filled;
}

static void send(int *data, int round) {
    for (int i = 0; i < LENGTH; i++) data[i] = value_of(round, i);
    OK(MPI_Recv(NULL, 0, MPI_INT, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Send(data, LENGTH, MPI_INT, 0, DATA, MPI_COMM_WORLD));
}

int main(int argc, char **argv) {
    int rank, filled = 0, *data;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    CHECK(argc > 2);
    int rounds = atoi(argv[1]);
    if (argc > 3) OK(MPI_Alloc_mem(LENGTH * sizeof *data, MPI_INFO_NULL, &data));
    else CHECK(data = malloc(LENGTH * sizeof *data));
    /* Receives are exposed to who has been in contact, as ranks of one host are not by a barrier. */
    for (int i = 0; i < 2; i++)
        OK(MPI_Sendrecv(NULL, 0, MPI_INT, 1 - rank, GO, NULL, 0, MPI_INT, 1 - rank, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int round = 0; round < rounds; round++)
        if (rank == 0) filled += receive(data, round, atol(argv[2]));
        else send(data, round);
    if (rank == 0) printf("computes: %d of %d messages were there\n", filled, rounds);
    if (argc > 3) OK(MPI_Free_mem(data));
    else free(data);
    OK(MPI_Finalize());
    return 0;
}
