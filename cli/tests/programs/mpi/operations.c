/* A user's operation on a struct with gaps, contents of its datatype, packing for other machines, generalized requests. */
#include "check.h"

/* The least value with the rank that has it, and how many were compared. */
struct least {
    char rank;
    double value;
    short count;
};

/* It asks for the extent, as a function for any datatype has to. */
static void combine(void *in, void *inout, int *length, MPI_Datatype *type) {
    MPI_Aint lower, extent;
    OK(MPI_Type_get_extent(*type, &lower, &extent));
    for (int i = 0; i < *length; i++) {
        struct least *one = (struct least *)((char *)in + i * extent);
        struct least *other = (struct least *)((char *)inout + i * extent);
        int count = one->count + other->count;
        if (one->value <= other->value) *other = *one;
        other->count = count;
    }
}

static int queried, released;

static int query(void *extra, MPI_Status *status) {
    queried++;
    OK(MPI_Status_set_elements(status, MPI_INT, *(int *)extra));
    OK(MPI_Status_set_cancelled(status, 0));
    status->MPI_SOURCE = status->MPI_TAG = 4;
    return MPI_SUCCESS;
}

static int release(void *extra) {
    (void)extra;
    released++;
    return MPI_SUCCESS;
}

static int cancel(void *extra, int complete) {
    (void)extra; (void)complete;
    return MPI_SUCCESS;
}

int main(int argc, char **argv) {
    enum { COUNT = 3 };
    int rank, size;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));

    int lengths[] = {1, 1, 1};
    MPI_Aint places[] = {offsetof(struct least, rank), offsetof(struct least, value),
                         offsetof(struct least, count)};
    MPI_Datatype types[] = {MPI_CHAR, MPI_DOUBLE, MPI_SHORT}, packed, type;
    OK(MPI_Type_create_struct(3, lengths, places, types, &packed));
    OK(MPI_Type_create_resized(packed, 0, sizeof(struct least), &type));
    OK(MPI_Type_commit(&type));
    int integers, addresses, datatypes, combiner;
    OK(MPI_Type_get_envelope(type, &integers, &addresses, &datatypes, &combiner));
    CHECK(combiner == MPI_COMBINER_RESIZED && integers == 0 && addresses == 2 && datatypes == 1);
    MPI_Aint bounds[2];
    MPI_Datatype part;
    OK(MPI_Type_get_contents(type, 0, 2, 1, NULL, bounds, &part));
    CHECK(bounds[1] == (MPI_Aint)sizeof(struct least));
    int of[4];
    OK(MPI_Type_get_contents(part, 4, 3, 3, of, places, types));
    CHECK(of[0] == 3 && types[1] == MPI_DOUBLE && places[2] == offsetof(struct least, count));
    OK(MPI_Type_free(&part));

    struct least own[COUNT], result[COUNT];
    for (int i = 0; i < COUNT; i++) own[i] = (struct least){rank, (rank + i) % size, 1};
    MPI_Op op;
    OK(MPI_Op_create(combine, 0, &op));
    MPI_Request request;
    OK(MPI_Iallreduce(own, result, COUNT, type, op, MPI_COMM_WORLD, &request));
    /* Both are needed until it has ended, and no longer by the program. */
    OK(MPI_Type_free(&type));
    OK(MPI_Op_free(&op));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    for (int i = 0; i < COUNT; i++) {
        CHECK(result[i].value == 0 && result[i].count == size);
        CHECK(result[i].rank == (size - i % size) % size);
    }

    MPI_Aint bytes, position = 0;
    char buffer[64];
    double pair[2] = {1.5, -2};
    OK(MPI_Pack_external_size("external32", 2, MPI_DOUBLE, &bytes));
    CHECK(bytes == 16);
    OK(MPI_Pack_external("external32", pair, 2, MPI_DOUBLE, buffer, sizeof buffer, &position));
    CHECK(position == 16 && buffer[0] == 0x3f && buffer[8] == (char)0xc0);
    position = 0;
    double back[2];
    OK(MPI_Unpack_external("external32", buffer, 16, &position, back, 2, MPI_DOUBLE));
    CHECK(back[0] == 1.5 && back[1] == -2);

    int elements = 5, flag;
    MPI_Status status;
    OK(MPI_Grequest_start(query, release, cancel, &elements, &request));
    OK(MPI_Test(&request, &flag, &status));
    CHECK(!flag);
    OK(MPI_Grequest_complete(request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Get_count(&status, MPI_INT, &elements));
    CHECK(elements == 5 && status.MPI_TAG == 4 && queried == 1 && released == 1);

    int to = (rank + 1) % size, from = (rank + size - 1) % size, value = rank;
    OK(MPI_Isendrecv_replace(&value, 1, MPI_INT, to, 0, from, 0, MPI_COMM_WORLD, &request));
    OK(MPI_Wait(&request, &status));
    CHECK(value == from && status.MPI_SOURCE == from);
    if (rank == 0) printf("operations: %d ranks, good\n", size);
    OK(MPI_Finalize());
    return 0;
}
