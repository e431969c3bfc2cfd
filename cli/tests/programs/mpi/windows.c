/* Windows of each kind: put and get in each kind of epoch, with gaps and long ones, and accumulates that all ranks make at once. */
#include "check.h"

enum { COUNT = 70000, ADDS = 20 };

static int rank, size;

/* A window over COUNT ints of each rank, and the displacement of a rank's first int. */
struct window {
    MPI_Win win;
    int *base;
    MPI_Aint *first;
};

static MPI_Aint at(const struct window *of, int target, int place) {
    return of->first ? MPI_Aint_add(of->first[target], place * sizeof(int)) : place;
}

/* Makes the window of a kind: 0 is created, 1 allocated, 2 dynamic. */
static struct window make(int kind) {
    struct window made = {MPI_WIN_NULL, NULL, NULL};
    const MPI_Aint bytes = COUNT * sizeof(int);
    if (kind == 1) {
        OK(MPI_Win_allocate(bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &made.base, &made.win));
        memset(made.base, 0, bytes);
    } else {
        made.base = calloc(COUNT, sizeof(int));
        CHECK(made.base != NULL);
    }
    if (kind == 0) OK(MPI_Win_create(made.base, bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &made.win));
    if (kind == 2) {
        OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &made.win));
        OK(MPI_Win_attach(made.win, made.base, bytes));
        made.first = calloc(size, sizeof(MPI_Aint));
        CHECK(made.first != NULL);
        MPI_Aint own;
        OK(MPI_Get_address(made.base, &own));
        OK(MPI_Allgather(&own, 1, MPI_AINT, made.first, 1, MPI_AINT, MPI_COMM_WORLD));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    return made;
}

static void release(struct window *made, int kind) {
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (kind == 2) OK(MPI_Win_detach(made->win, made->base));
    OK(MPI_Win_free(&made->win));
    CHECK(made->win == MPI_WIN_NULL);
    if (kind != 1) free(made->base);
    free(made->first);
}

/* Puts to the next rank and gets from it, between fences. */
static void fences(const struct window *of) {
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    int *out = calloc(COUNT, sizeof(int)), *in = calloc(COUNT, sizeof(int));
    CHECK(out && in);
    OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, of->win));
    for (int count = 1; count <= COUNT; count *= 41) {
        for (int i = 0; i < count; i++) out[i] = 1000 * rank + i;
        OK(MPI_Put(out, count, MPI_INT, next, at(of, next, 0), count, MPI_INT, of->win));
        OK(MPI_Win_fence(0, of->win));
        for (int i = 0; i < count; i++) CHECK(of->base[i] == 1000 * before + i);
        OK(MPI_Get(in, count, MPI_INT, next, at(of, next, 0), count, MPI_INT, of->win));
        OK(MPI_Win_fence(0, of->win));
        for (int i = 0; i < count; i++) CHECK(in[i] == 1000 * rank + i);
    }
    // Every second int of the target, from all of the origin.
    MPI_Datatype gapped;
    OK(MPI_Type_vector(50, 1, 2, MPI_INT, &gapped));
    OK(MPI_Type_commit(&gapped));
    for (int i = 0; i < 100; i++) of->base[i] = -1;
    OK(MPI_Win_fence(0, of->win));
    OK(MPI_Put(out, 50, MPI_INT, next, at(of, next, 0), 1, gapped, of->win));
    OK(MPI_Win_fence(0, of->win));
    for (int i = 0; i < 100; i++) CHECK(of->base[i] == (i % 2 ? -1 : 1000 * before + i / 2));
    OK(MPI_Get(in, 1, gapped, next, at(of, next, 0), 1, gapped, of->win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, of->win));
    for (int i = 0; i < 50; i++) CHECK(in[2 * i] == 1000 * rank + i);
    OK(MPI_Type_free(&gapped));
    free(out);
    free(in);
}

/* Each rank exposes its memory to all, and writes into that of all. */
static void exposures(const struct window *of) {
    MPI_Group all;
    OK(MPI_Win_get_group(of->win, &all));
    for (int round = 1; round < 4; round++) {
        OK(MPI_Win_post(all, 0, of->win));
        OK(MPI_Win_start(all, 0, of->win));
        const int value = 100 * round + rank;
        for (int to = 0; to < size; to++) OK(MPI_Put(&value, 1, MPI_INT, to, at(of, to, rank), 1, MPI_INT, of->win));
        OK(MPI_Win_complete(of->win));
        OK(MPI_Win_wait(of->win));
        for (int from = 0; from < size; from++) CHECK(of->base[from] == 100 * round + from);
    }
    OK(MPI_Group_free(&all));
}

/* All ranks change values of all ranks; the first int counts by a lock, the second by instructions, the third and more by many at
 * once. */
static void changes(const struct window *of) {
    int ones[100], old, one = 1, value;
    for (int i = 0; i < 100; i++) ones[i] = 1;
    memset(of->base, 0, 103 * sizeof(int));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int turn = 0; turn < ADDS; turn++) {
        const int to = (rank + turn) % size;
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, of->win));
        OK(MPI_Get(&value, 1, MPI_INT, to, at(of, to, 0), 1, MPI_INT, of->win));
        OK(MPI_Win_flush(to, of->win));
        value++;
        OK(MPI_Put(&value, 1, MPI_INT, to, at(of, to, 0), 1, MPI_INT, of->win));
        OK(MPI_Win_unlock(to, of->win));
    }
    OK(MPI_Win_lock_all(0, of->win));
    for (int turn = 0; turn < ADDS; turn++) {
        for (int to = 0; to < size; to++) {
            OK(MPI_Fetch_and_op(&one, &old, MPI_INT, to, at(of, to, 1), MPI_SUM, of->win));
            OK(MPI_Win_flush(to, of->win));
            CHECK(old >= 0 && old < ADDS * size);
            OK(MPI_Accumulate(ones, 100, MPI_INT, to, at(of, to, 2), 100, MPI_INT, MPI_SUM, of->win));
            // Counts by compare-and-swap, in the int behind.
            for (int seen = 0, found = -1; found != seen;) {
                const int next = seen + 1;
                OK(MPI_Compare_and_swap(&next, &seen, &found, MPI_INT, to, at(of, to, 102), of->win));
                OK(MPI_Win_flush(to, of->win));
                if (found == seen) break;
                seen = found;
                found = -1;
            }
        }
    }
    OK(MPI_Win_unlock_all(of->win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    int sum = 0;
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, of->win));
    OK(MPI_Allreduce(&of->base[0], &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(sum == ADDS * size);
    for (int i = 1; i < 103; i++) CHECK(of->base[i] == ADDS * size);
    OK(MPI_Win_unlock(rank, of->win));
}

/* Requests end when they are waited for. */
static void requests(const struct window *of) {
    const int next = (rank + 1) % size;
    int value = 7 + rank, old = -1, got = -1;
    MPI_Request all[2];
    of->base[0] = 0;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, of->win));
    OK(MPI_Rput(&value, 1, MPI_INT, next, at(of, next, 0), 1, MPI_INT, of->win, &all[0]));
    OK(MPI_Wait(&all[0], MPI_STATUS_IGNORE));
    OK(MPI_Win_flush(next, of->win));
    OK(MPI_Rget_accumulate(&value, 1, MPI_INT, &old, 1, MPI_INT, next, at(of, next, 0), 1, MPI_INT, MPI_SUM, of->win, &all[0]));
    OK(MPI_Wait(&all[0], MPI_STATUS_IGNORE));
    CHECK(old == value);
    OK(MPI_Raccumulate(&value, 1, MPI_INT, next, at(of, next, 0), 1, MPI_INT, MPI_SUM, of->win, &all[0]));
    OK(MPI_Wait(&all[0], MPI_STATUS_IGNORE));
    OK(MPI_Win_flush(next, of->win));
    OK(MPI_Rget(&got, 1, MPI_INT, next, at(of, next, 0), 1, MPI_INT, of->win, &all[1]));
    OK(MPI_Wait(&all[1], MPI_STATUS_IGNORE));
    CHECK(got == 3 * value);
    OK(MPI_Win_unlock_all(of->win));
}

int main(int argc, char **argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    for (int kind = 0; kind < 3; kind++) {
        struct window made = make(kind);
        fences(&made);
        exposures(&made);
        changes(&made);
        requests(&made);
        release(&made, kind);
    }
    OK(MPI_Finalize());
    if (rank == 0) printf("windows: %d ranks, good\n", size);
    return 0;
}
