/* Passes a token round, all ranks on one core: who has not got it tests in a loop, or probes. Says how often. */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

enum { ROUNDS = 50, TAG = 1 };

static long wait_for(int from, int probes)
{
    long in_vain = 0;
    int flag = 0, token;
    MPI_Request request;
    if (probes) {
        while (MPI_Iprobe(from, TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE), !flag)
            ++in_vain;
        MPI_Recv(&token, 1, MPI_INT, from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return in_vain;
    }
    MPI_Irecv(&token, 1, MPI_INT, from, TAG, MPI_COMM_WORLD, &request);
    while (MPI_Test(&request, &flag, MPI_STATUS_IGNORE), !flag)
        ++in_vain;
    return in_vain;
}

int main(int argc, char **argv)
{
    cpu_set_t own, one;
    int rank, size, core = 0, probes = argc > 1 && strcmp(argv[1], "probe") == 0;
    long in_vain = 0;
    sched_getaffinity(0, sizeof own, &own);
    while (!CPU_ISSET(core, &own))
        ++core;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    sched_setaffinity(0, sizeof one, &one);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int round = 0; round < ROUNDS; ++round) {
        if (rank == 0)
            MPI_Send(&round, 1, MPI_INT, 1 % size, TAG, MPI_COMM_WORLD);
        in_vain += wait_for((rank + size - 1) % size, probes);
        if (rank != 0)
            MPI_Send(&round, 1, MPI_INT, (rank + 1) % size, TAG, MPI_COMM_WORLD);
    }
    printf("%d tested in vain %ld times\n", rank, in_vain);
    MPI_Finalize();
    return 0;
}
