/* What MPI-3.0 has removed, as programs of MPI-1 have it. */
#include "check.h"

struct particle {
    int kind;
    double place[3];
};

static int raised;

static void handler(MPI_Comm *comm, int *code, ...) {
    (void)comm;
    raised = *code;
}

/* A particle by its addresses, with its padding left out. */
static MPI_Datatype particles(struct particle *one) {
    MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE}, made;
    MPI_Aint places[2], base;
    int lengths[2] = {1, 3};
    OK(MPI_Address(one, &base));
    OK(MPI_Address(&one->kind, &places[0]));
    OK(MPI_Address(&one->place[0], &places[1]));
    for (int i = 0; i < 2; ++i) places[i] -= base;
    OK(MPI_Type_struct(2, lengths, places, types, &made));
    OK(MPI_Type_commit(&made));
    return made;
}

static void bounds(MPI_Datatype type, MPI_Aint lower, MPI_Aint upper) {
    MPI_Aint is_lower = -1, is_upper = -1, extent = -1;
    OK(MPI_Type_lb(type, &is_lower));
    OK(MPI_Type_ub(type, &is_upper));
    OK(MPI_Type_extent(type, &extent));
    CHECK(is_lower == lower && is_upper == upper && extent == upper - lower);
}

int main(int argc, char **argv) {
    int rank, size, lengths[2] = {1, 2};
    MPI_Aint places[2] = {8, 24}, kept = 5;
    MPI_Datatype type;
    MPI_Errhandler mine, found;
    struct particle sent, got;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));

    sent.kind = rank;
    for (int i = 0; i < 3; ++i) sent.place[i] = 10 * rank + i;
    type = particles(&sent);
    bounds(type, 0, sizeof sent);
    int left = (rank + size - 1) % size;
    OK(MPI_Sendrecv(&sent, 1, type, (rank + 1) % size, 1, &got, 1, type, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(got.kind == left && got.place[0] == 10 * left && got.place[2] == 10 * left + 2);
    OK(MPI_Type_free(&type));

    OK(MPI_Type_hvector(3, 1, 16, MPI_DOUBLE, &type));
    bounds(type, 0, 40);
    OK(MPI_Type_free(&type));
    OK(MPI_Type_hindexed(2, lengths, places, MPI_DOUBLE, &type));
    bounds(type, 8, 40);
    OK(MPI_Type_free(&type));

    OK(MPI_Errhandler_create(handler, &mine));
    OK(MPI_Errhandler_set(MPI_COMM_WORLD, mine));
    OK(MPI_Errhandler_get(MPI_COMM_WORLD, &found));
    CHECK(found == mine);
    CHECK(MPI_Send(&rank, 1, MPI_INT, size, 0, MPI_COMM_WORLD) != MPI_SUCCESS && raised);
    OK(MPI_Errhandler_set(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    CHECK(MPI_Type_ub(MPI_DATATYPE_NULL, &kept) != MPI_SUCCESS && kept == 5);
    OK(MPI_Errhandler_free(&found));
    OK(MPI_Errhandler_free(&mine));

    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) printf("removed: %d ranks, good\n", size);
    return MPI_Finalize();
}
