/* Partitioned communication around a ring: ends with different numbers of partitions, data with gaps, several rounds, threads that make
 * partitions ready, and what statuses say. */
#include "check.h"

#include <pthread.h>

enum { PARTS = 8, PER_PART = 6, COUNT = PARTS * PER_PART, ROUNDS = 4, THREADS = 2 };

struct worker {
    MPI_Request request;
    int first;
    double *data;
    double base;
};

/* Fills its share of the partitions, and says that each is ready. */
static void *work(void *given) {
    struct worker *own = given;
    for (int part = own->first; part < PARTS; part += THREADS) {
        for (int i = 0; i < PER_PART; i++) own->data[2 * (part * PER_PART + i)] = own->base + part * PER_PART + i;
        OK(MPI_Pready(part, own->request));
    }
    return NULL;
}

int main(int argc, char **argv) {
    int rank, size, provided, count, flag;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    CHECK(provided == MPI_THREAD_MULTIPLE);
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    // Every second double is sent; they are received without gaps.
    MPI_Datatype gapped;
    OK(MPI_Type_create_resized(MPI_DOUBLE, 0, 2 * sizeof(double), &gapped));
    OK(MPI_Type_commit(&gapped));
    double out[2 * COUNT] = {0}, in[COUNT];
    MPI_Request requests[2];
    OK(MPI_Psend_init(out, PARTS, PER_PART, gapped, next, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]));
    OK(MPI_Precv_init(in, PARTS / 2, 2 * PER_PART, MPI_DOUBLE, before, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]));
    OK(MPI_Type_free(&gapped));
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t threads[THREADS];
        struct worker workers[THREADS];
        OK(MPI_Startall(2, requests));
        for (int i = 0; i < THREADS; i++) {
            workers[i] = (struct worker){requests[0], i, out, 1000.0 * rank + 100.0 * round};
            CHECK(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
        }
        for (int part = PARTS / 2 - 1; part >= 0; part--) {
            for (flag = 0; !flag;) OK(MPI_Parrived(requests[1], part, &flag));
            CHECK(in[2 * PER_PART * part] == 1000.0 * before + 100.0 * round + 2 * PER_PART * part);
        }
        for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
        MPI_Status statuses[2];
        OK(MPI_Waitall(2, requests, statuses));
        CHECK(statuses[1].MPI_SOURCE == before && statuses[1].MPI_TAG == 5);
        OK(MPI_Get_count(&statuses[1], MPI_DOUBLE, &count));
        CHECK(count == COUNT);
        for (int i = 0; i < COUNT; i++) CHECK(in[i] == 1000.0 * before + 100.0 * round + i && out[2 * i + 1] == 0);
    }
    OK(MPI_Request_free(&requests[0]));
    OK(MPI_Request_free(&requests[1]));
    OK(MPI_Finalize());
    if (rank == 0) printf("partitions: %d ranks, good\n", size);
    return 0;
}
