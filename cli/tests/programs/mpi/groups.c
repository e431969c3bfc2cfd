/* Intercommunicators of the even and the odd ranks: messages, collectives in their forms, and what is made of them. */
#include "check.h"

static int world, total, me, size, others, local_sum, remote_sum;
static MPI_Comm inter;

/* The rank in the world of a rank of the other group. */
static int world_of(int remote) { return 2 * remote + 1 - world % 2; }

static void ask(void) {
    int flag, result;
    MPI_Group local, remote, both;
    MPI_Comm copy;
    MPI_Request request;
    OK(MPI_Comm_test_inter(inter, &flag));
    CHECK(flag);
    OK(MPI_Comm_rank(inter, &me));
    OK(MPI_Comm_size(inter, &size));
    OK(MPI_Comm_remote_size(inter, &others));
    CHECK(me == world / 2 && size == (total + 1 - world % 2) / 2 && others == total - size);
    OK(MPI_Comm_group(inter, &local));
    OK(MPI_Comm_remote_group(inter, &remote));
    OK(MPI_Group_union(local, remote, &both));
    OK(MPI_Group_size(both, &result));
    CHECK(result == total);
    OK(MPI_Comm_idup(inter, &copy, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Comm_compare(inter, copy, &result));
    CHECK(result == MPI_CONGRUENT);
    OK(MPI_Comm_free(&copy));
    OK(MPI_Group_free(&local));
    OK(MPI_Group_free(&remote));
    OK(MPI_Group_free(&both));
}

static void exchange(void) {
    MPI_Request requests[2];
    MPI_Status status;
    for (int other = 0; other < others; other++) {
        int got = -1;
        OK(MPI_Isend(&world, 1, MPI_INT, other, 4, inter, &requests[0]));
        OK(MPI_Irecv(&got, 1, MPI_INT, other, MPI_ANY_TAG, inter, &requests[1]));
        OK(MPI_Wait(&requests[1], &status));
        CHECK(got == world_of(other) && status.MPI_SOURCE == other && status.MPI_TAG == 4);
        OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    }
    /* From anybody: as many as there are, each once. */
    int sum = 0, value;
    for (int other = 0; other < others; other++)
        OK(MPI_Send(&world, 1, MPI_INT, other, 5, inter));
    for (int other = 0; other < others; other++) {
        OK(MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 5, inter, &status));
        CHECK(value == world_of(status.MPI_SOURCE));
        sum += value;
    }
    CHECK(sum == remote_sum);
    OK(MPI_Send(&world, 1, MPI_INT, MPI_PROC_NULL, 5, inter));
    OK(MPI_Recv(&value, 1, MPI_INT, MPI_PROC_NULL, 5, inter, &status));
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL);
}

/* Data goes from the even group's last rank to the odd group, and back. */
static void rooted(void) {
    for (int from_odd = 0; from_odd < 2; from_odd++) {
        int is_mine = world % 2 == from_odd, last = (is_mine ? size : others) - 1;
        int is_root = is_mine && me == last, root = is_mine ? (is_root ? MPI_ROOT : MPI_PROC_NULL) : last;
        double data[300];
        for (int place = 0; place < 300; place++)
            data[place] = is_root ? place + world : -1;
        OK(MPI_Bcast(data, 300, MPI_DOUBLE, root, inter));
        for (int place = 0; place < 300; place++)
            CHECK(data[place] == (is_mine ? (is_root ? place + world : -1) : place + world_of(last)));
        int *all = malloc((others + 1) * sizeof *all), value = 7 * world;
        OK(MPI_Gather(&value, 1, MPI_INT, all, 1, MPI_INT, root, inter));
        for (int other = 0; is_root && other < others; other++)
            CHECK(all[other] == 7 * world_of(other));
        for (int other = 0; other < others; other++)
            all[other] = 10 * world + other;
        OK(MPI_Scatter(all, 1, MPI_INT, &value, 1, MPI_INT, root, inter));
        CHECK(is_mine || value == 10 * world_of(last) + me);
        int sum = -1;
        MPI_Request request;
        OK(MPI_Ireduce(&world, &sum, 1, MPI_INT, MPI_SUM, root, inter, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK(sum == (is_root ? remote_sum : -1));
        free(all);
    }
}

static void among_all(void) {
    int sum, *out = malloc(others * sizeof *out), *in = malloc(others * sizeof *in);
    MPI_Request request;
    OK(MPI_Barrier(inter));
    OK(MPI_Allreduce_init(&world, &sum, 1, MPI_INT, MPI_SUM, inter, MPI_INFO_NULL, &request));
    for (int round = 0; round < 3; round++) {
        sum = -1;
        OK(MPI_Start(&request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK(sum == remote_sum);
    }
    OK(MPI_Request_free(&request));
    OK(MPI_Allgather(&world, 1, MPI_INT, in, 1, MPI_INT, inter));
    for (int other = 0; other < others; other++) {
        CHECK(in[other] == world_of(other));
        out[other] = 100 * world + other;
    }
    OK(MPI_Ialltoall(out, 1, MPI_INT, in, 1, MPI_INT, inter, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    for (int other = 0; other < others; other++)
        CHECK(in[other] == 100 * world_of(other) + me);
    free(out);
    free(in);
    OK(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
    int class, code = MPI_Scan(&world, &sum, 1, MPI_INT, MPI_SUM, inter);
    OK(MPI_Error_class(code, &class));
    CHECK(class == MPI_ERR_COMM);
}

/* All as one group: the odd ranks first. */
static void merge(void) {
    MPI_Comm all;
    int rank, sum;
    OK(MPI_Intercomm_merge(inter, world % 2 == 0, &all));
    OK(MPI_Comm_rank(all, &rank));
    CHECK(rank == (world % 2 ? me : others + me));
    OK(MPI_Allreduce(&world, &sum, 1, MPI_INT, MPI_SUM, all));
    CHECK(sum == local_sum + remote_sum);
    OK(MPI_Comm_free(&all));
}

int main(int argc, char **argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &world));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &total));
    for (int rank = 0; rank < total; rank++)
        *(rank % 2 == world % 2 ? &local_sum : &remote_sum) += rank;
    MPI_Comm local;
    OK(MPI_Comm_split(MPI_COMM_WORLD, world % 2, 0, &local));
    for (int round = 0; total > 1 && round < 3; round++) {
        if (round < 2) {
            OK(MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, 1 - world % 2, 9, &inter));
        } else {
            MPI_Group all, mine, theirs;
            OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
            OK(MPI_Comm_group(local, &mine));
            OK(MPI_Group_difference(all, mine, &theirs));
            OK(MPI_Intercomm_create_from_groups(mine, 0, theirs, 0, "org.tagwire.test", MPI_INFO_NULL,
                                                MPI_ERRORS_ARE_FATAL, &inter));
            OK(MPI_Group_free(&all));
            OK(MPI_Group_free(&mine));
            OK(MPI_Group_free(&theirs));
        }
        ask();
        for (int again = 0; again < 4; again++) {
            exchange();
            rooted();
            among_all();
        }
        merge();
        OK(MPI_Comm_disconnect(&inter));
        CHECK(inter == MPI_COMM_NULL);
    }
    OK(MPI_Comm_free(&local));
    if (world == 0)
        printf("groups: %d ranks\n", total);
    OK(MPI_Finalize());
    return 0;
}
