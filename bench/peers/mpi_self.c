/*
 * Calls of an MPI library of the standard ABI by a process alone, for ci/instructions: what each costs over the layers below.
 *
 *     mpi_self LIBRARY CASE COUNT
 *
 *     wait      MPI_Irecv and MPI_Isend of 8 bytes to itself, MPI_Wait for both
 *     window    the same, 64 at a time, MPI_Waitall for all receives and for all sends
 *     sendrecv  MPI_Sendrecv of 8 bytes with itself
 *     test      MPI_Test of a receive that nothing has come for
 *     iprobe    MPI_Iprobe where nothing has come
 *     put       MPI_Put of 8 bytes into its own window, which is locked
 *     fop       MPI_Fetch_and_op of a long there
 *     cas       MPI_Compare_and_swap of one
 *     acc       MPI_Accumulate of one
 *     flush     MPI_Win_flush of it
 *     fence     MPI_Win_fence behind such a put
 *     pscw      such a put between MPI_Win_post, MPI_Win_start, MPI_Win_complete and MPI_Win_wait with itself
 *     lock      such a put between MPI_Win_lock, which excludes others, and MPI_Win_unlock
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void *handle; /* of the ABI: MPI-5.0, chapter 20 */
#define COMM_WORLD ((handle)0x101)
#define BYTE ((handle)0x247)
#define LONG ((handle)0x20a)
#define SUM ((handle)0x21)
#define INFO_NULL ((handle)0x130)
enum { WINDOW = 64, TAG = 7, BYTES = 8, EXCLUSIVE = 301 };

static int (*init)(int *, char ***), (*finalize)(void);
static int (*isend)(const void *, int, handle, int, int, handle, handle *);
static int (*irecv)(void *, int, handle, int, int, handle, handle *);
static int (*wait_for)(handle *, void *), (*wait_all)(int, handle *, void *);
static int (*test)(handle *, int *, void *), (*iprobe)(int, int, handle, int *, void *);
static int (*sendrecv)(const void *, int, handle, int, int, void *, int, handle, int, int, handle, void *);

static int (*allocate)(long, int, handle, handle, void *, handle *), (*free_win)(handle *);
static int (*lock_all)(int, handle), (*unlock_all)(handle), (*flush)(int, handle);
static int (*lock)(int, int, int, handle), (*unlock)(int, handle);
static int (*put)(const void *, int, handle, int, long, int, handle, handle);
static int (*fetch)(const void *, void *, handle, int, long, handle, handle);
static int (*swap)(const void *, const void *, void *, handle, int, long, handle);
static int (*accumulate)(const void *, int, handle, int, long, int, handle, handle, handle);
static int (*fence)(int, handle), (*win_group)(handle, handle *), (*post)(handle, int, handle), (*start_epoch)(handle, int, handle);
static int (*complete)(handle), (*wait_epoch)(handle);

static char out[BYTES], in[WINDOW][BYTES];
static handle sends[WINDOW], receives[WINDOW];

static void *symbol(void *library, const char *name) {
    void *found = dlsym(library, name);
    if (!found) {
        fprintf(stderr, "no %s in the library\n", name);
        exit(2);
    }
    return found;
}

static void start(int place) {
    irecv(in[place], BYTES, BYTE, 0, TAG, COMM_WORLD, &receives[place]);
    isend(out, BYTES, BYTE, 0, TAG, COMM_WORLD, &sends[place]);
}

static void wait_case(long count) {
    while (count-- > 0) {
        start(0);
        wait_for(&receives[0], NULL);
        wait_for(&sends[0], NULL);
    }
}

static void window_case(long count) {
    for (; count > 0; count -= WINDOW) {
        for (int i = 0; i < WINDOW; i++) irecv(in[i], BYTES, BYTE, 0, TAG, COMM_WORLD, &receives[i]);
        for (int i = 0; i < WINDOW; i++) isend(out, BYTES, BYTE, 0, TAG, COMM_WORLD, &sends[i]);
        wait_all(WINDOW, receives, NULL);
        wait_all(WINDOW, sends, NULL);
    }
}

static void sendrecv_case(long count) {
    while (count-- > 0) sendrecv(out, BYTES, BYTE, 0, TAG, in[0], BYTES, BYTE, 0, TAG, COMM_WORLD, NULL);
}

static void test_case(long count) {
    int flag;
    irecv(in[0], BYTES, BYTE, 0, TAG, COMM_WORLD, &receives[0]);
    while (count-- > 0) test(&receives[0], &flag, NULL);
    isend(out, BYTES, BYTE, 0, TAG, COMM_WORLD, &sends[0]);
    wait_for(&receives[0], NULL);
    wait_for(&sends[0], NULL);
}

static void iprobe_case(long count) {
    int flag;
    while (count-- > 0) iprobe(0, TAG, COMM_WORLD, &flag, NULL);
}

/* A window of this process, with all of it locked. */
static handle locked(void) {
    handle win;
    void *memory;
    allocate(4096, 1, INFO_NULL, COMM_WORLD, &memory, &win);
    lock_all(0, win);
    return win;
}

static void unlocked(handle win) {
    unlock_all(win);
    free_win(&win);
}

static void put_case(long count) {
    handle win = locked();
    while (count-- > 0) put(out, BYTES, BYTE, 0, 64, BYTES, BYTE, win);
    unlocked(win);
}

static void fop_case(long count) {
    handle win = locked();
    long one = 1, old;
    while (count-- > 0) fetch(&one, &old, LONG, 0, 64, SUM, win);
    unlocked(win);
}

static void cas_case(long count) {
    handle win = locked();
    long one = 1, old;
    while (count-- > 0) swap(&one, &one, &old, LONG, 0, 64, win);
    unlocked(win);
}

static void acc_case(long count) {
    handle win = locked();
    long one = 1;
    while (count-- > 0) accumulate(&one, 1, LONG, 0, 64, 1, LONG, SUM, win);
    unlocked(win);
}

static void fence_case(long count) {
    handle win;
    void *memory;
    allocate(4096, 1, INFO_NULL, COMM_WORLD, &memory, &win);
    fence(0, win);
    while (count-- > 0) {
        put(out, BYTES, BYTE, 0, 64, BYTES, BYTE, win);
        fence(0, win);
    }
    free_win(&win);
}

static void pscw_case(long count) {
    handle win, group;
    void *memory;
    allocate(4096, 1, INFO_NULL, COMM_WORLD, &memory, &win);
    win_group(win, &group);
    while (count-- > 0) {
        post(group, 0, win);
        start_epoch(group, 0, win);
        put(out, BYTES, BYTE, 0, 64, BYTES, BYTE, win);
        complete(win);
        wait_epoch(win);
    }
    free_win(&win);
}

static void lock_case(long count) {
    handle win;
    void *memory;
    allocate(4096, 1, INFO_NULL, COMM_WORLD, &memory, &win);
    while (count-- > 0) {
        lock(EXCLUSIVE, 0, 0, win);
        put(out, BYTES, BYTE, 0, 64, BYTES, BYTE, win);
        unlock(0, win);
    }
    free_win(&win);
}

static void flush_case(long count) {
    handle win = locked();
    while (count-- > 0) flush(0, win);
    unlocked(win);
}

static const struct {
    const char *name;
    void (*run)(long);
} cases[] = {
    {"wait", wait_case},     {"window", window_case}, {"sendrecv", sendrecv_case},
    {"test", test_case},     {"iprobe", iprobe_case}, {"put", put_case},
    {"fop", fop_case},       {"cas", cas_case},       {"acc", acc_case},
    {"flush", flush_case},   {"fence", fence_case},   {"pscw", pscw_case},
    {"lock", lock_case},
};

int main(int argc, char **argv) {
    void *library = argc == 4 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
    if (!library) {
        fprintf(stderr, "mpi_self LIBRARY CASE COUNT: %s\n", argc == 4 ? dlerror() : "three arguments, please");
        return 2;
    }
    *(void **)&init = symbol(library, "MPI_Init");
    *(void **)&finalize = symbol(library, "MPI_Finalize");
    *(void **)&isend = symbol(library, "MPI_Isend");
    *(void **)&irecv = symbol(library, "MPI_Irecv");
    *(void **)&wait_for = symbol(library, "MPI_Wait");
    *(void **)&wait_all = symbol(library, "MPI_Waitall");
    *(void **)&test = symbol(library, "MPI_Test");
    *(void **)&iprobe = symbol(library, "MPI_Iprobe");
    *(void **)&sendrecv = symbol(library, "MPI_Sendrecv");
    *(void **)&allocate = symbol(library, "MPI_Win_allocate");
    *(void **)&free_win = symbol(library, "MPI_Win_free");
    *(void **)&lock_all = symbol(library, "MPI_Win_lock_all");
    *(void **)&unlock_all = symbol(library, "MPI_Win_unlock_all");
    *(void **)&lock = symbol(library, "MPI_Win_lock");
    *(void **)&unlock = symbol(library, "MPI_Win_unlock");
    *(void **)&flush = symbol(library, "MPI_Win_flush");
    *(void **)&put = symbol(library, "MPI_Put");
    *(void **)&fetch = symbol(library, "MPI_Fetch_and_op");
    *(void **)&swap = symbol(library, "MPI_Compare_and_swap");
    *(void **)&accumulate = symbol(library, "MPI_Accumulate");
    *(void **)&fence = symbol(library, "MPI_Win_fence");
    *(void **)&win_group = symbol(library, "MPI_Win_get_group");
    *(void **)&post = symbol(library, "MPI_Win_post");
    *(void **)&start_epoch = symbol(library, "MPI_Win_start");
    *(void **)&complete = symbol(library, "MPI_Win_complete");
    *(void **)&wait_epoch = symbol(library, "MPI_Win_wait");
    init(NULL, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(cases[i].name, argv[2]) == 0) {
            cases[i].run(atol(argv[3]));
            finalize();
            return 0;
        }
    }
    fprintf(stderr, "mpi_self: no case %s\n", argv[2]);
    return 2;
}
