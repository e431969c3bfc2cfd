/* MPI_IN_PLACE, zero counts, null addresses and null datatypes in collectives of all kinds. */
#include "check.h"

#define MOST 16

static int rank, size;

static void gather_scatter(void) {
    int all[MOST * 3], own[3];
    for (int root = 0; root < size; root++) {
        for (int i = 0; i < 3 * size; i++) all[i] = -1;
        for (int i = 0; i < 3; i++) { own[i] = 10 * rank + i; all[3 * rank + i] = own[i]; }
        if (rank == root)
            OK(MPI_Gather(MPI_IN_PLACE, -7, MPI_DATATYPE_NULL, all, 3, MPI_INT, root, MPI_COMM_WORLD));
        else
            OK(MPI_Gather(own, 3, MPI_INT, NULL, -3, MPI_DATATYPE_NULL, root, MPI_COMM_WORLD));
        if (rank == root) for (int i = 0; i < 3 * size; i++) CHECK(all[i] == 10 * (i / 3) + i % 3);
        if (rank == root)
            OK(MPI_Scatter(all, 3, MPI_INT, MPI_IN_PLACE, -1, MPI_DATATYPE_NULL, root, MPI_COMM_WORLD));
        else {
            own[0] = own[1] = own[2] = -1;
            OK(MPI_Scatter(NULL, -9, MPI_DATATYPE_NULL, own, 3, MPI_INT, root, MPI_COMM_WORLD));
            for (int i = 0; i < 3; i++) CHECK(own[i] == 10 * rank + i);
        }
        int counts[MOST], at[MOST], total = 0;
        for (int i = 0; i < size; i++) { counts[i] = i % 3; at[i] = total; total += counts[i]; }
        int v[MOST * 3];
        memset(v, 0xff, sizeof v);
        if (rank == root) {
            for (int i = 0; i < counts[rank]; i++) v[at[rank] + i] = rank;
            OK(MPI_Gatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, v, counts, at, MPI_INT, root, MPI_COMM_WORLD));
            for (int r = 0; r < size; r++) for (int i = 0; i < counts[r]; i++) CHECK(v[at[r] + i] == r);
            OK(MPI_Scatterv(v, counts, at, MPI_INT, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, root, MPI_COMM_WORLD));
        } else {
            for (int i = 0; i < counts[rank]; i++) own[i] = rank;
            OK(MPI_Gatherv(counts[rank] ? own : NULL, counts[rank], MPI_INT, NULL, NULL, NULL, MPI_DATATYPE_NULL, root, MPI_COMM_WORLD));
            own[0] = own[1] = -1;
            OK(MPI_Scatterv(NULL, NULL, NULL, MPI_DATATYPE_NULL, counts[rank] ? own : NULL, counts[rank], MPI_INT, root, MPI_COMM_WORLD));
            for (int i = 0; i < counts[rank]; i++) CHECK(own[i] == rank);
        }
    }
}

static void all_kinds(void) {
    int all[MOST], counts[MOST], at[MOST];
    for (int i = 0; i < size; i++) { all[i] = -1; counts[i] = 1; at[i] = size - 1 - i; }
    all[rank] = rank;
    OK(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, MPI_INT, MPI_COMM_WORLD));
    for (int i = 0; i < size; i++) CHECK(all[i] == i);
    memset(all, 0xff, sizeof all);
    all[at[rank]] = rank;
    OK(MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, counts, at, MPI_INT, MPI_COMM_WORLD));
    for (int i = 0; i < size; i++) CHECK(all[at[i]] == i);
    /* Packed bytes against ints. */
    unsigned char bytes[4];
    memcpy(bytes, &rank, 4);
    MPI_Datatype byte_type;
    OK(MPI_Type_contiguous(4, MPI_BYTE, &byte_type));
    OK(MPI_Type_commit(&byte_type));
    OK(MPI_Allgather(bytes, 1, byte_type, all, 4, MPI_BYTE, MPI_COMM_WORLD));
    for (int i = 0; i < size; i++) CHECK(all[i] == i);
    OK(MPI_Type_free(&byte_type));
    for (int i = 0; i < size; i++) all[i] = 100 * rank + i;
    OK(MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, MPI_INT, MPI_COMM_WORLD));
    for (int i = 0; i < size; i++) CHECK(all[i] == 100 * i + rank);
    for (int i = 0; i < size; i++) { all[i] = 100 * rank + i; at[i] = i; }
    OK(MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, all, counts, at, MPI_INT, MPI_COMM_WORLD));
    for (int i = 0; i < size; i++) CHECK(all[i] == 100 * i + rank);
    MPI_Datatype types[MOST];
    int bytes_at[MOST];
    for (int i = 0; i < size; i++) { all[i] = 100 * rank + i; bytes_at[i] = 4 * i; types[i] = MPI_INT; }
    OK(MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, all, counts, bytes_at, types, MPI_COMM_WORLD));
    for (int i = 0; i < size; i++) CHECK(all[i] == 100 * i + rank);
    /* Nothing at all, with null types where counts are zero. */
    int none[MOST] = {0};
    for (int i = 0; i < size; i++) types[i] = MPI_DATATYPE_NULL;
    OK(MPI_Alltoallw(NULL, none, none, types, NULL, none, none, types, MPI_COMM_WORLD));
    OK(MPI_Alltoall(NULL, 0, MPI_INT, NULL, 0, MPI_INT, MPI_COMM_WORLD));
    OK(MPI_Allreduce(NULL, NULL, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    OK(MPI_Reduce(NULL, NULL, 0, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD));
    OK(MPI_Bcast(NULL, 0, MPI_DOUBLE, size - 1, MPI_COMM_WORLD));
    OK(MPI_Allgather(NULL, 0, MPI_INT, NULL, 0, MPI_INT, MPI_COMM_WORLD));
    OK(MPI_Scan(NULL, NULL, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    OK(MPI_Reduce_scatter(NULL, NULL, none, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    OK(MPI_Reduce_scatter_block(NULL, NULL, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
}

static void reductions(void) {
    int a[MOST], b[MOST];
    for (int root = 0; root < size; root++) {
        a[0] = rank + 1; a[1] = -rank;
        if (rank == root) {
            OK(MPI_Reduce(MPI_IN_PLACE, a, 2, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD));
            CHECK(a[0] == size * (size + 1) / 2 && a[1] == -size * (size - 1) / 2);
        } else OK(MPI_Reduce(a, NULL, 2, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD));
    }
    a[0] = rank;
    OK(MPI_Scan(MPI_IN_PLACE, a, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(a[0] == rank * (rank + 1) / 2);
    a[0] = rank;
    OK(MPI_Exscan(MPI_IN_PLACE, a, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(rank == 0 ? a[0] == 0 : a[0] == rank * (rank - 1) / 2);
    int counts[MOST], total = 0;
    for (int i = 0; i < size; i++) { counts[i] = i % 2 + (i == 0); total += counts[i]; }
    for (int i = 0; i < total; i++) a[i] = i + rank;
    OK(MPI_Reduce_scatter(MPI_IN_PLACE, a, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    int first = 0;
    for (int i = 0; i < rank; i++) first += counts[i];
    for (int i = 0; i < counts[rank]; i++) CHECK(a[i] == size * (first + i) + size * (size - 1) / 2);
    for (int i = 0; i < size; i++) a[i] = i * (rank + 1);
    MPI_Request request;
    OK(MPI_Ireduce_scatter_block(MPI_IN_PLACE, a, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(a[0] == rank * size * (size + 1) / 2);
    /* Persistent in place: what is there at each start is taken. */
    OK(MPI_Allreduce_init(MPI_IN_PLACE, b, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
    for (int round = 0; round < 4; round++) {
        b[0] = round * rank;
        OK(MPI_Start(&request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK(b[0] == round * (size - 1));
    }
    OK(MPI_Request_free(&request));
    /* Pairs, in place and of all predefined kinds. */
    struct { double value; int at; } pair = {(rank * 7) % 5, rank};
    struct { float value; int at; } small = {-(float)((rank * 3) % 4), rank};
    struct { long value; int at; } wide = {1, rank};
    struct { short value; int at; } tiny = {(short)rank, rank};
    struct { long double value; int at; } huge = {rank % 2, rank};
    int two[2] = {rank / 2, rank};
    OK(MPI_Allreduce(MPI_IN_PLACE, &pair, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD));
    OK(MPI_Allreduce(MPI_IN_PLACE, &small, 1, MPI_FLOAT_INT, MPI_MINLOC, MPI_COMM_WORLD));
    OK(MPI_Allreduce(MPI_IN_PLACE, &wide, 1, MPI_LONG_INT, MPI_MAXLOC, MPI_COMM_WORLD));
    OK(MPI_Allreduce(MPI_IN_PLACE, &tiny, 1, MPI_SHORT_INT, MPI_MAXLOC, MPI_COMM_WORLD));
    OK(MPI_Allreduce(MPI_IN_PLACE, &huge, 1, MPI_LONG_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD));
    OK(MPI_Allreduce(MPI_IN_PLACE, two, 1, MPI_2INT, MPI_MINLOC, MPI_COMM_WORLD));
    double best = -1; int where = 0;
    for (int r = 0; r < size; r++) if ((r * 7) % 5 > best) { best = (r * 7) % 5; where = r; }
    CHECK(pair.value == best && pair.at == where);
    CHECK(wide.at == 0 && tiny.at == size - 1 && two[0] == 0 && two[1] == 0);
    CHECK(huge.at == (size > 1 ? 1 : 0));
}

/* Nonblocking ones that end in another order than they began, mixed with messages and other communicators. */
static void mixed(void) {
    MPI_Comm copy;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &copy));
    int in[4] = {rank, rank, rank, rank}, out[4], token = -1, back[MOST];
    MPI_Request all[6];
    OK(MPI_Iallreduce(&in[0], &out[0], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &all[0]));
    OK(MPI_Iallreduce(&in[1], &out[1], 1, MPI_INT, MPI_MAX, copy, &all[1]));
    OK(MPI_Iallgather(&in[2], 1, MPI_INT, back, 1, MPI_INT, MPI_COMM_WORLD, &all[2]));
    OK(MPI_Irecv(&token, 1, MPI_INT, (rank + size - 1) % size, 5, copy, &all[3]));
    OK(MPI_Ibarrier(copy, &all[4]));
    OK(MPI_Iexscan(&in[3], &out[3], 1, MPI_INT, MPI_SUM, copy, &all[5]));
    OK(MPI_Comm_free(&copy));
    OK(MPI_Send(&rank, 1, MPI_INT, (rank + 1) % size, 6, MPI_COMM_WORLD));
    int other;
    OK(MPI_Recv(&other, 1, MPI_INT, MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(other == (rank + size - 1) % size);
    for (int left = 0; left < 5; left++) {
        /* All but the receive, that nobody sends to. */
        MPI_Request five[5] = {all[5], all[4], all[2], all[1], all[0]};
        int index;
        OK(MPI_Waitany(5, five, &index, MPI_STATUS_IGNORE));
        CHECK(index != MPI_UNDEFINED && five[index] == MPI_REQUEST_NULL);
        all[5] = five[0]; all[4] = five[1]; all[2] = five[2]; all[1] = five[3]; all[0] = five[4];
    }
    CHECK(out[0] == size * (size - 1) / 2 && out[1] == size - 1);
    for (int i = 0; i < size; i++) CHECK(back[i] == i);
    MPI_Status status;
    int flag;
    OK(MPI_Cancel(&all[3]));
    OK(MPI_Wait(&all[3], &status));
    OK(MPI_Test_cancelled(&status, &flag));
    CHECK(flag && token == -1);
}

int main(int argc, char **argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    gather_scatter();
    all_kinds();
    reductions();
    mixed();
    OK(MPI_Finalize());
    if (rank == 0) printf("inplace: %d ranks, good\n", size);
    return 0;
}
