/*
 * Times of one-sided operations of an MPI library, two ranks: rank 0 accesses the memory of rank 1, which waits in a barrier.
 *
 *     mpiexec -n 2 mpi_windows [allocate|create|alloc_mem]
 *
 *     allocate   windows of MPI_Win_allocate (else)
 *     create     of MPI_Win_create, over memory of the C library
 *     alloc_mem  of MPI_Win_create, over memory of MPI_Alloc_mem
 *
 * Prints a line for each row: its name, and the least of 15 means, in microseconds. Each operation is a call and MPI_Win_flush, in
 * one epoch of MPI_Win_lock_all, but where the row says otherwise.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 1 << 20, TRIALS = 15 };

static MPI_Win win;
static MPI_Group other;
static char *out, *in, *base;
static int rank;
static long added = 1, old, compared;

static void put(int bytes) {
    MPI_Put(out, bytes, MPI_BYTE, 1, 0, bytes, MPI_BYTE, win);
    MPI_Win_flush(1, win);
}
static void put_8(void) { put(8); }
static void put_64k(void) { put(1 << 16); }
static void put_1m(void) { put(BYTES); }
static void get_8(void) {
    MPI_Get(in, 8, MPI_BYTE, 1, 0, 8, MPI_BYTE, win);
    MPI_Win_flush(1, win);
}
static void get_64k(void) {
    MPI_Get(in, 1 << 16, MPI_BYTE, 1, 0, 1 << 16, MPI_BYTE, win);
    MPI_Win_flush(1, win);
}
static void put_8_64(void) {
    for (int i = 0; i < 64; i++) MPI_Put(out, 8, MPI_BYTE, 1, 8 * i, 8, MPI_BYTE, win);
    MPI_Win_flush(1, win);
}
static void fetch(void) {
    MPI_Fetch_and_op(&added, &old, MPI_LONG, 1, 0, MPI_SUM, win);
    MPI_Win_flush(1, win);
}
static void swap(void) {
    MPI_Compare_and_swap(&added, &compared, &old, MPI_LONG, 1, 0, win);
    MPI_Win_flush(1, win);
}
static void accumulate_8(void) {
    MPI_Accumulate(&added, 1, MPI_LONG, 1, 0, 1, MPI_LONG, MPI_SUM, win);
    MPI_Win_flush(1, win);
}
static void get_accumulate_8(void) {
    MPI_Get_accumulate(&added, 1, MPI_LONG, &old, 1, MPI_LONG, 1, 0, 1, MPI_LONG, MPI_SUM, win);
    MPI_Win_flush(1, win);
}
static void accumulate_1m(void) {
    const int count = BYTES / (int)sizeof(int);
    MPI_Accumulate(out, count, MPI_INT, 1, 0, count, MPI_INT, MPI_SUM, win);
    MPI_Win_flush(1, win);
}
static void get_accumulate_1m(void) {
    const int count = BYTES / (int)sizeof(int);
    MPI_Get_accumulate(out, count, MPI_INT, in, count, MPI_INT, 1, 0, count, MPI_INT, MPI_SUM, win);
    MPI_Win_flush(1, win);
}
static void copy_1m(void) {
    memcpy(in, out, BYTES);
    __asm__ volatile("" : : "r"(in) : "memory");
}
static void locked(void) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
    MPI_Put(out, 8, MPI_BYTE, 1, 0, 8, MPI_BYTE, win);
    MPI_Win_unlock(1, win);
}
static void fenced(void) {
    MPI_Win_fence(0, win);
    if (rank == 0) MPI_Put(out, 8, MPI_BYTE, 1, 0, 8, MPI_BYTE, win);
    MPI_Win_fence(0, win);
}
static void exposed(void) {
    if (rank == 0) {
        MPI_Win_start(other, 0, win);
        MPI_Put(out, 8, MPI_BYTE, 1, 0, 8, MPI_BYTE, win);
        MPI_Win_complete(win);
    } else {
        MPI_Win_post(other, 0, win);
        MPI_Win_wait(win);
    }
}

enum { ALL, ONE, NONE, BOTH };

/* What rank 0 does in an epoch of all, or of its own; what it does without a window; what both do. */
static const struct {
    const char *name;
    void (*run)(void);
    int count, epoch;
} rows[] = {
    {"put 8 B", put_8, 20000, ALL},
    {"get 8 B", get_8, 20000, ALL},
    {"64 puts of 8 B, one flush", put_8_64, 2000, ALL},
    {"fetch_and_op 8 B", fetch, 20000, ALL},
    {"compare_and_swap 8 B", swap, 20000, ALL},
    {"accumulate 8 B", accumulate_8, 20000, ALL},
    {"get_accumulate 8 B", get_accumulate_8, 20000, ALL},
    {"accumulate 1 MiB of int", accumulate_1m, 60, ALL},
    {"get_accumulate 1 MiB", get_accumulate_1m, 40, ALL},
    {"put 64 KiB", put_64k, 1000, ALL},
    {"get 64 KiB", get_64k, 1000, ALL},
    {"put 1 MiB", put_1m, 60, ALL},
    {"memcpy 1 MiB", copy_1m, 60, NONE},
    {"exclusive lock, put 8 B, unlock", locked, 5000, ONE},
    {"fence, put 8 B, fence", fenced, 5000, BOTH},
    {"post, start, put 8 B, complete, wait", exposed, 5000, BOTH},
};

static double trial(int row) {
    const int epoch = rows[row].epoch, takes_part = rank == 0 || epoch == BOTH;
    MPI_Barrier(MPI_COMM_WORLD);
    if (epoch == ALL && rank == 0) MPI_Win_lock_all(0, win);
    double start = MPI_Wtime();
    for (int i = 0; takes_part && i < rows[row].count; i++) rows[row].run();
    double took = MPI_Wtime() - start;
    if (epoch == ALL && rank == 0) MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    return took / rows[row].count * 1e6;
}

int main(int argc, char **argv) {
    const char *kind = argc > 1 ? argv[1] : "allocate";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (strcmp(kind, "allocate") == 0) {
        MPI_Win_allocate(BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    } else {
        if (strcmp(kind, "alloc_mem") == 0) {
            MPI_Alloc_mem(BYTES, MPI_INFO_NULL, &base);
        } else {
            base = aligned_alloc(4096, BYTES);
        }
        MPI_Win_create(base, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    }
    memset(base, 1, BYTES);
    out = aligned_alloc(4096, BYTES);
    in = aligned_alloc(4096, BYTES);
    memset(out, 1, BYTES);
    memset(in, 1, BYTES);
    MPI_Group all;
    const int peer = 1 - rank;
    MPI_Win_get_group(win, &all);
    MPI_Group_incl(all, 1, &peer, &other);
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
        double least = 1e9;
        for (int i = 0; i < TRIALS; i++) {
            double took = trial((int)row);
            if (took < least) least = took;
        }
        if (rank == 0) printf("%s\t%.4g\n", rows[row].name, least);
    }
    MPI_Group_free(&other);
    MPI_Group_free(&all);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
