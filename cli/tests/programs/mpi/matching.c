/* Receives whose places in the queues are known, and as many broadcasts as the command line says, for traces of matching. */
#include "check.h"

enum { GO = 90, EXPECTED = 4, UNEXPECTED = 3 };

static int rank, in[EXPECTED + UNEXPECTED];

/* Rank 0 posts its receives before rank 1 may send, which sends the last one first. */
static void expected(void) {
    MPI_Request requests[EXPECTED];
    if (rank == 0) {
        for (int i = 0; i < EXPECTED; ++i) OK(MPI_Irecv(&in[i], 1, MPI_INT, 1, i, MPI_COMM_WORLD, &requests[i]));
        OK(MPI_Send(NULL, 0, MPI_INT, 1, GO, MPI_COMM_WORLD));
        OK(MPI_Waitall(EXPECTED, requests, MPI_STATUSES_IGNORE));
        for (int i = 0; i < EXPECTED; ++i) CHECK(in[i] == i);
    } else if (rank == 1) {
        OK(MPI_Recv(NULL, 0, MPI_INT, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        for (int i = EXPECTED - 1; i >= 0; --i) OK(MPI_Send(&i, 1, MPI_INT, 0, i, MPI_COMM_WORLD));
    }
}

/* The last message of rank 2 is there, and so are those before it. Receives take the last, then those of any source and of any tag. */
static void unexpected(void) {
    if (rank == 2) {
        for (int i = 0; i < UNEXPECTED; ++i) OK(MPI_Send(&i, 1, MPI_INT, 0, 20 + i, MPI_COMM_WORLD));
    } else if (rank == 0) {
        OK(MPI_Probe(2, 22, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Recv(&in[0], 1, MPI_INT, 2, 22, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Recv(&in[1], 1, MPI_INT, MPI_ANY_SOURCE, 21, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Recv(&in[2], 1, MPI_INT, 2, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(in[0] == 2 && in[1] == 1 && in[2] == 0);
    }
}

int main(int argc, char **argv) {
    int broadcasts = argc > 1 ? atoi(argv[1]) : 0;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    expected();
    unexpected();
    for (int i = 0; i < broadcasts; ++i) {
        int told = rank == 0 ? i : -1;
        OK(MPI_Bcast(&told, 1, MPI_INT, 0, MPI_COMM_WORLD));
        CHECK(told == i);
    }
    OK(MPI_Finalize());
    if (rank == 0) printf("matching: %d broadcasts\n", broadcasts);
    return 0;
}
