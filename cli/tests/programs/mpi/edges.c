/* What is at the edge of the standard, or beyond it where other libraries go: handles that are freed early, data without bytes, a
   buffer for one message, a grid without places. */
#include "check.h"

static int rank, size;

static void nothing(void *in, void *inout, int *count, MPI_Datatype *type) {
    (void)in; (void)inout; (void)count; (void)type;
}

/* Data of no bytes, by an operation of the program. */
static void zero_size(void) {
    MPI_Datatype none;
    MPI_Op op;
    int x = 1, y = 2, *counts = malloc(sizeof(int) * size);
    for (int i = 0; i < size; ++i) counts[i] = i;
    OK(MPI_Type_contiguous(0, MPI_INT, &none));
    OK(MPI_Type_commit(&none));
    OK(MPI_Op_create(nothing, 1, &op));
    OK(MPI_Allreduce(&x, &y, 3, none, op, MPI_COMM_WORLD));
    OK(MPI_Scan(&x, &y, 3, none, op, MPI_COMM_WORLD));
    OK(MPI_Reduce_scatter_block(&x, &y, 3, none, op, MPI_COMM_WORLD));
    OK(MPI_Reduce_scatter(&x, &y, counts, none, op, MPI_COMM_WORLD));
    CHECK(x == 1 && y == 2);
    OK(MPI_Op_free(&op));
    OK(MPI_Type_free(&none));
    free(counts);
}

/* A chain of duplicates, each of the last, which is freed. */
static void chain(void) {
    MPI_Datatype last, next;
    int in = 7 + rank, out = 0, integers, addresses, types, combiner;
    OK(MPI_Type_contiguous(1, MPI_INT, &last));
    for (int i = 0; i < 100000; ++i) {
        OK(MPI_Type_dup(last, &next));
        OK(MPI_Type_free(&last));
        last = next;
    }
    OK(MPI_Type_commit(&last));
    OK(MPI_Sendrecv(&in, 1, last, 0, 0, &out, 1, last, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE));
    CHECK(out == in);
    OK(MPI_Type_get_envelope(last, &integers, &addresses, &types, &combiner));
    CHECK(combiner == MPI_COMBINER_DUP && types == 1);
    OK(MPI_Type_free(&last));
}

/* The datatype and the communicator of a persistent buffered send are freed before it starts; another datatype has the handle. */
static void bsend_init(void) {
    int a[4] = {1, 2, 3, 4}, b[4] = {0}, bytes, right = (rank + 1) % size, left = (rank + size - 1) % size, count;
    static char room[4096];
    void *at;
    MPI_Datatype every_second, other;
    MPI_Comm comm;
    MPI_Request send;
    MPI_Status status;
    OK(MPI_Buffer_attach(room, sizeof room));
    OK(MPI_Type_vector(2, 1, 2, MPI_INT, &every_second));
    OK(MPI_Type_commit(&every_second));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Bsend_init(a, 1, every_second, right, 3, comm, &send));
    OK(MPI_Type_free(&every_second));
    OK(MPI_Type_contiguous(1, MPI_INT, &other));
    OK(MPI_Type_commit(&other));
    MPI_Comm kept;
    OK(MPI_Comm_dup(comm, &kept));
    for (int round = 0; round < 2; ++round) {
        OK(MPI_Start(&send));
        OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
        OK(MPI_Recv(b, 4, MPI_INT, left, 3, comm, &status));
        OK(MPI_Get_count(&status, MPI_INT, &count));
        CHECK(count == 2 && b[0] == 1 && b[1] == 3);
    }
    OK(MPI_Comm_free(&comm));
    /* Nobody receives it: it is enough that it starts. */
    OK(MPI_Start(&send));
    OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&send));
    OK(MPI_Comm_free(&kept));
    OK(MPI_Type_free(&other));
    OK(MPI_Buffer_detach(&at, &bytes));
}

/* Room for one message, and two sends: the first needs no receive to leave. */
static void bsend_again(void) {
    int value = rank, got, bytes, right = (rank + 1) % size, left = (rank + size - 1) % size;
    void *at;
    OK(MPI_Pack_size(1, MPI_INT, MPI_COMM_WORLD, &bytes));
    bytes += MPI_BSEND_OVERHEAD;
    char *room = malloc(bytes);
    OK(MPI_Buffer_attach(room, bytes));
    OK(MPI_Bsend(&value, 1, MPI_INT, right, 5, MPI_COMM_WORLD));
    OK(MPI_Bsend(&value, 1, MPI_INT, right, 5, MPI_COMM_WORLD));
    for (int i = 0; i < 2; ++i) {
        OK(MPI_Recv(&got, 1, MPI_INT, left, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(got == left);
    }
    OK(MPI_Buffer_detach(&at, &bytes));
    free(room);
}

/* A grid that has no place for anybody leaves everybody where it is. */
static void no_places(void) {
    int extents[2] = {2, 0}, periods[2] = {0, 0}, mapped = -1;
    OK(MPI_Cart_map(MPI_COMM_WORLD, 2, extents, periods, &mapped));
    CHECK(mapped == rank);
}

int main(int argc, char **argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    bsend_again();
    bsend_init();
    zero_size();
    chain();
    no_places();
    OK(MPI_Finalize());
    if (rank == 0) printf("edges: %d ranks, good\n", size);
    return 0;
}
