/* Probes from any source, matched ones, by threads and in order; statuses and their setters. */
#include "check.h"
#include <pthread.h>

#define THREADS 4
#define ROUNDS 50

static int rank, size;

static void order(void) {
    /* Messages of one sender are probed in their order, with whatever tags. */
    if (rank == 0) {
        for (int from = 1; from < size; from++)
            for (int i = 0; i < 6; i++) {
                MPI_Status status;
                MPI_Message message;
                int count, value[6];
                OK(MPI_Mprobe(from, MPI_ANY_TAG, MPI_COMM_WORLD, &message, &status));
                CHECK(status.MPI_TAG == 100 + i && status.MPI_SOURCE == from);
                OK(MPI_Get_count(&status, MPI_INT, &count));
                CHECK(count == i);
                if (i % 2) OK(MPI_Mrecv(value, count, MPI_INT, &message, &status));
                else {
                    MPI_Request request;
                    OK(MPI_Imrecv(value, 6, MPI_INT, &message, &request));
                    OK(MPI_Wait(&request, &status));
                }
                CHECK(message == MPI_MESSAGE_NULL);
                OK(MPI_Get_elements(&status, MPI_INT, &count));
                CHECK(count == i);
                for (int k = 0; k < i; k++) CHECK(value[k] == from);
            }
    } else {
        int value[6] = {rank, rank, rank, rank, rank, rank};
        for (int i = 0; i < 6; i++) OK(MPI_Send(value, i, MPI_INT, 0, 100 + i, MPI_COMM_WORLD));
    }
    MPI_Message none;
    MPI_Status status;
    int flag;
    OK(MPI_Improbe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &flag, &none, &status));
    CHECK(flag && none == MPI_MESSAGE_NO_PROC && status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG);
    int dummy = 5;
    OK(MPI_Mrecv(&dummy, 1, MPI_INT, &none, &status));
    CHECK(none == MPI_MESSAGE_NULL && dummy == 5 && status.MPI_SOURCE == MPI_PROC_NULL);
}

static void *taker(void *argument) {
    long *sum = argument;
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Message message;
        MPI_Status status;
        int count, value[512];
        if (i % 2) OK(MPI_Mprobe(MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &message, &status));
        else {
            int flag = 0;
            while (!flag) OK(MPI_Improbe(MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &flag, &message, &status));
        }
        OK(MPI_Get_count(&status, MPI_INT, &count));
        OK(MPI_Mrecv(value, count, MPI_INT, &message, MPI_STATUS_IGNORE));
        for (int k = 1; k < count; k++) CHECK(value[k] == value[0]);
        CHECK(count % 512 == value[0] % 512);
        *sum += value[0];
    }
    return NULL;
}

static void *giver(void *argument) {
    long thread = (long)argument;
    for (int i = 0; i < ROUNDS; i++) {
        int value[512], number = 1 + (int)(thread * ROUNDS + i) % 500;
        for (int k = 0; k < number; k++) value[k] = number;
        OK(MPI_Send(value, number, MPI_INT, (rank + 1) % size, 7, MPI_COMM_WORLD));
    }
    return NULL;
}

static void threads(void) {
    pthread_t all[2 * THREADS];
    long sums[THREADS] = {0}, sum = 0, expected = 0;
    for (long i = 0; i < THREADS; i++) {
        pthread_create(&all[i], NULL, taker, &sums[i]);
        pthread_create(&all[THREADS + i], NULL, giver, (void *)i);
    }
    for (int i = 0; i < 2 * THREADS; i++) pthread_join(all[i], NULL);
    for (int i = 0; i < THREADS; i++) sum += sums[i];
    for (int i = 0; i < THREADS * ROUNDS; i++) expected += 1 + i % 500;
    CHECK(sum == expected);
}

static void statuses(void) {
    MPI_Status status;
    int flag, count;
    MPI_Count large;
    memset(&status, 0, sizeof status);
    OK(MPI_Status_set_elements_c(&status, MPI_DOUBLE, (MPI_Count)1 << 40));
    OK(MPI_Get_elements_c(&status, MPI_DOUBLE, &large));
    CHECK(large == (MPI_Count)1 << 40);
    OK(MPI_Get_count_c(&status, MPI_DOUBLE, &large));
    CHECK(large == (MPI_Count)1 << 40);
    OK(MPI_Get_count(&status, MPI_DOUBLE, &count));
    CHECK(count == MPI_UNDEFINED);
    OK(MPI_Status_set_cancelled(&status, 1));
    OK(MPI_Test_cancelled(&status, &flag));
    CHECK(flag);
    OK(MPI_Status_set_source(&status, 3));
    OK(MPI_Status_set_tag(&status, 4));
    OK(MPI_Status_set_error(&status, MPI_ERR_TAG));
    CHECK(status.MPI_SOURCE == 3 && status.MPI_TAG == 4 && status.MPI_ERROR == MPI_ERR_TAG);
    /* A pair of which half has come. */
    MPI_Datatype two, big;
    OK(MPI_Type_contiguous(2, MPI_INT, &two));
    OK(MPI_Type_commit(&two));
    int values[3] = {1, 2, 3}, got[8];
    MPI_Request request;
    OK(MPI_Irecv(got, 4, two, rank, 0, MPI_COMM_WORLD, &request));
    OK(MPI_Send(values, 3, MPI_INT, rank, 0, MPI_COMM_WORLD));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Get_count(&status, two, &count));
    CHECK(count == MPI_UNDEFINED);
    OK(MPI_Get_elements(&status, two, &count));
    CHECK(count == 3);
    OK(MPI_Type_free(&two));
    OK(MPI_Type_contiguous(0, MPI_INT, &big));
    OK(MPI_Type_commit(&big));
    OK(MPI_Irecv(NULL, 100, big, rank, 0, MPI_COMM_WORLD, &request));
    OK(MPI_Send(NULL, 100, big, rank, 0, MPI_COMM_WORLD));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Get_count(&status, big, &count));
    CHECK(count == 0);
    OK(MPI_Type_free(&big));
}

int main(int argc, char **argv) {
    int provided;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    CHECK(provided == MPI_THREAD_MULTIPLE);
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    order();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    threads();
    statuses();
    OK(MPI_Finalize());
    if (rank == 0) printf("probes: %d ranks, good\n", size);
    return 0;
}
