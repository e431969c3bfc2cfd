/* Persistent messages, collectives and partitioned operations, started together in any order, waited for in all ways. */
#include "check.h"
#include <pthread.h>

#define PARTS 8
#define THREADS 4
#define ROUNDS 12

static int rank, size;
static MPI_Request psend;

static void *ready(void *argument) {
    int thread = (int)(long)argument;
    for (int part = thread; part < PARTS; part += THREADS) OK(MPI_Pready(part, psend));
    return NULL;
}

static void together(void) {
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    static double from[PARTS * 6], into[PARTS * 6];
    int sum_in, sum, token, got, replaced;
    MPI_Datatype gapped;
    MPI_Request all[6];
    OK(MPI_Type_create_resized(MPI_DOUBLE, 0, 2 * sizeof(double), &gapped));
    OK(MPI_Type_commit(&gapped));
    /* Each partition: three doubles, every second one. The other end has two partitions of plain doubles' bytes. */
    OK(MPI_Psend_init(from, PARTS, 3, gapped, next, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &all[0]));
    OK(MPI_Precv_init(into, 2, PARTS * 3 / 2, MPI_DOUBLE, before, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &all[1]));
    OK(MPI_Type_free(&gapped));
    OK(MPI_Allreduce_init(&sum_in, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &all[2]));
    OK(MPI_Send_init(&token, 1, MPI_INT, next, 9, MPI_COMM_WORLD, &all[3]));
    OK(MPI_Recv_init(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &all[4]));
    OK(MPI_Ssend_init(&replaced, 0, MPI_INT, MPI_PROC_NULL, 9, MPI_COMM_WORLD, &all[5]));
    psend = all[0];
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Status statuses[6];
        int flag;
        for (int i = 0; i < PARTS * 6; i++) { from[i] = 1000 * round + 100 * rank + i; into[i] = -1; }
        sum_in = rank + round;
        token = 50 * round + rank;
        got = -1;
        /* Inactive ones are complete. */
        OK(MPI_Test(&all[round % 6], &flag, &statuses[0]));
        CHECK(flag && statuses[0].MPI_SOURCE == MPI_ANY_SOURCE && statuses[0].MPI_TAG == MPI_ANY_TAG);
        if (round % 2) OK(MPI_Startall(6, all));
        else for (int i = 0; i < 6; i++) OK(MPI_Start(&all[(i + 2) % 6 == 2 ? 2 : (i + 2) % 6]));
        pthread_t threads[THREADS];
        for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, ready, (void *)i);
        int arrived = 0;
        while (!arrived) OK(MPI_Parrived(all[1], 1, &arrived));
        CHECK(into[PARTS * 3 - 1] == 1000 * round + 100 * before + 2 * (PARTS * 3 - 1));
        for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
        if (round % 3 == 0) {
            OK(MPI_Waitall(6, all, statuses));
            CHECK(statuses[4].MPI_SOURCE == before && statuses[4].MPI_TAG == 9 && statuses[5].MPI_SOURCE == MPI_ANY_SOURCE);
        } else if (round % 3 == 1) {
            int done = 0, count, places[6];
            while (done < 6) {
                OK(MPI_Waitsome(6, all, &count, places, statuses));
                CHECK(count != MPI_UNDEFINED && count > 0);
                done += count;
            }
            OK(MPI_Waitsome(6, all, &count, places, statuses));
            CHECK(count == MPI_UNDEFINED);
        } else {
            for (int done = 0; done < 6; done++) {
                int index;
                do OK(MPI_Testany(6, all, &index, &flag, &statuses[0])); while (!flag);
                CHECK(index != MPI_UNDEFINED && all[index] != MPI_REQUEST_NULL);
            }
        }
        for (int i = 0; i < PARTS * 3; i++) CHECK(into[i] == 1000 * round + 100 * before + 2 * i);
        CHECK(sum == size * (size - 1) / 2 + size * round && got == 50 * round + before);
        /* The next round's receive takes any tag: nobody sends before all have theirs. */
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    for (int i = 0; i < 6; i++) { OK(MPI_Request_free(&all[i])); CHECK(all[i] == MPI_REQUEST_NULL); }
}

/* Several pairs with one tag: matched in the order of their initialization. */
static void order(void) {
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    int from[3][4], into[3][4];
    MPI_Request sends[3], recvs[3];
    for (int i = 0; i < 3; i++) {
        OK(MPI_Psend_init(from[i], 2, 2, MPI_INT, next, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &sends[i]));
        OK(MPI_Precv_init(into[i], 4, 1, MPI_INT, before, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &recvs[i]));
    }
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 3; i++) for (int k = 0; k < 4; k++) { from[i][k] = 100 * i + 10 * rank + k; into[i][k] = -1; }
        OK(MPI_Startall(3, sends));
        for (int i = 2; i >= 0; i--) OK(MPI_Start(&recvs[i]));
        for (int i = 2; i >= 0; i--) OK(MPI_Pready_range(0, 1, sends[i]));
        OK(MPI_Waitall(3, recvs, MPI_STATUSES_IGNORE));
        OK(MPI_Waitall(3, sends, MPI_STATUSES_IGNORE));
        for (int i = 0; i < 3; i++) for (int k = 0; k < 4; k++) CHECK(into[i][k] == 100 * i + 10 * before + k);
    }
    for (int i = 0; i < 3; i++) { OK(MPI_Request_free(&sends[i])); OK(MPI_Request_free(&recvs[i])); }
}

/* Requests that are freed while they are active, of communicators that are freed as well; buffered and ready ones. */
static void freed(void) {
    MPI_Comm comm;
    static int long_data[100000], long_room[100000];
    MPI_Request request, bsend;
    int next = (rank + 1) % size, before = (rank + size - 1) % size, done = 0;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    for (int i = 0; i < 100000; i++) long_data[i] = rank + i;
    OK(MPI_Irecv(long_room, 100000, MPI_INT, before, 0, comm, &request));
    OK(MPI_Request_free(&request));
    OK(MPI_Irecv(&done, 1, MPI_INT, before, 1, comm, &request));
    MPI_Request send;
    OK(MPI_Isend(long_data, 100000, MPI_INT, next, 0, comm, &send));
    OK(MPI_Request_free(&send));
    OK(MPI_Send(&size, 1, MPI_INT, next, 1, comm));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(done == size);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    int bytes;
    OK(MPI_Pack_size(10, MPI_INT, MPI_COMM_WORLD, &bytes));
    int room = 4 * (bytes + MPI_BSEND_OVERHEAD);
    char *buffer = malloc(room), *back;
    OK(MPI_Buffer_attach(buffer, room));
    int values[10], got[10];
    OK(MPI_Bsend_init(values, 10, MPI_INT, next, 3, MPI_COMM_WORLD, &bsend));
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 10; i++) values[i] = round * i;
        OK(MPI_Start(&bsend));
        OK(MPI_Wait(&bsend, MPI_STATUS_IGNORE));
        for (int i = 0; i < 10; i++) values[i] = -1;
        OK(MPI_Recv(got, 10, MPI_INT, before, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        for (int i = 0; i < 10; i++) CHECK(got[i] == round * i);
    }
    OK(MPI_Request_free(&bsend));
    OK(MPI_Buffer_detach(&back, &bytes));
    CHECK(back == buffer && bytes == room);
    free(buffer);
    /* The freed receive has come by now, or comes before the end. */
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv) {
    int provided;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    together();
    order();
    freed();
    OK(MPI_Finalize());
    if (rank == 0) printf("persistent: %d ranks, good\n", size);
    return 0;
}
