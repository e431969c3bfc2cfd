/* Rank 1 is killed where the first argument says; calls of the others that wait for it end with an error, and they go on. The second says how
   the window is made, the third how often each changes values. */
#include "check.h"

#include <signal.h>
#include <unistd.h>

enum { COUNT = 100 };

static int rank, size, times;
static MPI_Win win;

static void die(int number) {
    (void)number;
    kill(getpid(), SIGKILL);
}

/* Says that a call has ended as it has to. */
static void ended(int code) {
    int class;
    CHECK(code != MPI_SUCCESS);
    CHECK(MPI_Error_class(code, &class) == MPI_SUCCESS);
    CHECK(class == MPI_ERR_PROC_ABORTED);
    printf("%d went on\n", rank);
    fflush(stdout);
}

/* All ranks change values of rank 0, some by instructions and some under a lock, and the victim dies in the midst of it. */
static void changes(void) {
    int values[COUNT], old;
    for (int i = 0; i < COUNT; i++) values[i] = 1;
    if (rank == 1) {
        signal(SIGALRM, die);
        ualarm(20000, 0);
    }
    int code = MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
    for (int i = 0; (i < times || rank == 1) && code == MPI_SUCCESS; i++) {
        code = MPI_Fetch_and_op(values, &old, MPI_INT, 0, 0, MPI_SUM, win);
        if (code == MPI_SUCCESS) code = MPI_Accumulate(values, COUNT, MPI_INT, 0, 0, COUNT, MPI_INT, MPI_SUM, win);
        if (code == MPI_SUCCESS) code = MPI_Win_flush(0, win);
    }
    if (code == MPI_SUCCESS) code = MPI_Win_unlock_all(win);
    // Where it was not found before.
    if (code == MPI_SUCCESS) code = MPI_Win_fence(0, win);
    ended(code);
}

int main(int argc, char **argv) {
    CHECK(argc == 4);
    times = atoi(argv[3]);
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    // By which no error of a window is raised.
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL));
    static int memory[COUNT];
    int *base;
    const char *what = argv[1];
    if (strcmp(argv[2], "create") == 0) {
        OK(MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    } else {
        OK(MPI_Win_allocate(sizeof memory, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    }
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    MPI_Group all;
    OK(MPI_Win_get_group(win, &all));
    if (strcmp(what, "changes") == 0) {
        changes();
    } else {
        if (rank == 1 && strcmp(what, "lock") == 0) OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
        if (strcmp(what, "wait") == 0) OK(MPI_Win_post(all, 0, win));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (rank == 1) die(0);
        if (strcmp(what, "fence") == 0) ended(MPI_Win_fence(0, win));
        if (strcmp(what, "lock") == 0) ended(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
        if (strcmp(what, "start") == 0) ended(MPI_Win_start(all, 0, win));
        if (strcmp(what, "wait") == 0) ended(MPI_Win_wait(win));
        if (strcmp(what, "free") == 0) ended(MPI_Win_free(&win));
    }
    // Who leaves early is missed by who still waits for it.
    int other = 2 - rank, met = rank;
    OK(MPI_Sendrecv_replace(&met, 1, MPI_INT, other, 1, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(met == other);
    // The epoch of the call that has failed is over; the changes' own may be open.
    if (win != MPI_WIN_NULL && strcmp(what, "changes") != 0) {
        CHECK(MPI_Win_free(&win) != MPI_SUCCESS);
        CHECK(win == MPI_WIN_NULL);
    }
    OK(MPI_Finalize());
    return 0;
}
