/* Four threads of each rank: messages, collectives of a communicator each, groups of the same ranks, and requests, all at once. */
#include "check.h"
#include <pthread.h>

enum { THREADS = 4, ROUNDS = 200 };

static int rank, size;
static MPI_Comm comms[THREADS];

/* Threads make groups of all ranks at once, each with a tag of its own (MPI-5.0, section 7.4.2). Digests of 13 bits do not tell the
 * first two tags apart where there are two ranks. */
static void make_groups(int me) {
    static const int tags[THREADS] = {151, 198, 1, 2};
    MPI_Group world;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Comm comm;
        OK(MPI_Comm_create_group(MPI_COMM_WORLD, world, tags[me], &comm));
        int tag = rank == 0 ? tags[me] : -1;
        OK(MPI_Bcast(&tag, 1, MPI_INT, 0, comm));
        CHECK(tag == tags[me]);
        OK(MPI_Comm_free(&comm));
    }
    OK(MPI_Group_free(&world));
}

static void *work(void *argument) {
    int me = (int)(size_t)argument;
    MPI_Comm comm = comms[me];
    int next = (rank + 1) % size, last = (rank + size - 1) % size;
    for (int round = 0; round < ROUNDS; round++) {
        int out = rank * 1000 + round, in = -1, sum = 0;
        MPI_Request requests[3];
        OK(MPI_Irecv(&in, 1, MPI_INT, last, me, MPI_COMM_WORLD, &requests[0]));
        OK(MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm, &requests[1]));
        OK(MPI_Isend(&out, 1, MPI_INT, next, me, MPI_COMM_WORLD, &requests[2]));
        OK(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
        CHECK(in == last * 1000 + round && sum == size * (size - 1) / 2);
        int values[16];
        for (int i = 0; i < 16; i++) values[i] = rank == round % size ? round + i : 0;
        OK(MPI_Bcast(values, 16, MPI_INT, round % size, comm));
        CHECK(values[15] == round + 15);
    }
    make_groups(me);
    return NULL;
}

int main(int argc, char **argv) {
    int provided, is_main;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    CHECK(provided == MPI_THREAD_MULTIPLE);
    OK(MPI_Is_thread_main(&is_main));
    CHECK(is_main);
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]));
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)(size_t)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) OK(MPI_Comm_free(&comms[i]));
    if (rank == 0) printf("threads: %d ranks, good\n", size);
    OK(MPI_Finalize());
    return 0;
}
