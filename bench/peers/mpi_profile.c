/*
 * A library for LD_PRELOAD that keeps account of what a program calls of an MPI library of the standard ABI, for bench/mpi_profile.
 * Calls of C (MPI_X) and those of the binding for Fortran (PMPI_X) are counted alike. Rank 0 writes MPI_PROFILE in MPI_Finalize: the
 * keys of `profiles` in docs/benchmarking.md. Messages are short up to MPI_PROFILE_SHORT bytes.
 *
 * For programs that call MPI in one thread.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef void *handle; /* of the ABI: MPI-5.0, chapter 20 */
#define COMM_WORLD ((handle)0x101)
#define BYTE ((handle)0x247)

/* Each call: its name in MPI and here, its parameters, and what it passes on. Those that send have b, n and t. */
#define SENDS(X)                                                                                                                  \
    X(Send, send, (const void *b, int n, handle t, int to, int tag, handle c), (b, n, t, to, tag, c))                             \
    X(Ssend, ssend, (const void *b, int n, handle t, int to, int tag, handle c), (b, n, t, to, tag, c))                           \
    X(Rsend, rsend, (const void *b, int n, handle t, int to, int tag, handle c), (b, n, t, to, tag, c))                           \
    X(Bsend, bsend, (const void *b, int n, handle t, int to, int tag, handle c), (b, n, t, to, tag, c))                           \
    X(Isend, isend, (const void *b, int n, handle t, int to, int tag, handle c, handle *r), (b, n, t, to, tag, c, r))             \
    X(Issend, issend, (const void *b, int n, handle t, int to, int tag, handle c, handle *r), (b, n, t, to, tag, c, r))           \
    X(Irsend, irsend, (const void *b, int n, handle t, int to, int tag, handle c, handle *r), (b, n, t, to, tag, c, r))           \
    X(Sendrecv, sendrecv,                                                                                                         \
      (const void *b, int n, handle t, int to, int tag, void *rb, int rn, handle rt, int from, int rtag, handle c, void *s),      \
      (b, n, t, to, tag, rb, rn, rt, from, rtag, c, s))

#define OTHERS(X)                                                                                                                 \
    X(Recv, recv, (void *b, int n, handle t, int from, int tag, handle c, void *s), (b, n, t, from, tag, c, s))                   \
    X(Irecv, irecv, (void *b, int n, handle t, int from, int tag, handle c, handle *r), (b, n, t, from, tag, c, r))               \
    X(Wait, wait, (handle * r, void *s), (r, s))                                                                                  \
    X(Waitall, wait_all, (int n, handle *r, void *s), (n, r, s))                                                                  \
    X(Waitany, wait_any, (int n, handle *r, int *i, void *s), (n, r, i, s))                                                       \
    X(Waitsome, wait_some, (int n, handle *r, int *m, int *i, void *s), (n, r, m, i, s))                                          \
    X(Test, test, (handle * r, int *f, void *s), (r, f, s))                                                                       \
    X(Testall, test_all, (int n, handle *r, int *f, void *s), (n, r, f, s))                                                       \
    X(Testany, test_any, (int n, handle *r, int *i, int *f, void *s), (n, r, i, f, s))                                            \
    X(Probe, probe, (int from, int tag, handle c, void *s), (from, tag, c, s))                                                    \
    X(Iprobe, iprobe, (int from, int tag, handle c, int *f, void *s), (from, tag, c, f, s))                                       \
    X(Start, start, (handle * r), (r))                                                                                            \
    X(Startall, start_all, (int n, handle *r), (n, r))                                                                            \
    X(Barrier, barrier, (handle c), (c))                                                                                          \
    X(Bcast, bcast, (void *b, int n, handle t, int root, handle c), (b, n, t, root, c))                                           \
    X(Reduce, reduce, (const void *b, void *rb, int n, handle t, handle o, int root, handle c), (b, rb, n, t, o, root, c))        \
    X(Allreduce, allreduce, (const void *b, void *rb, int n, handle t, handle o, handle c), (b, rb, n, t, o, c))                  \
    X(Scan, scan, (const void *b, void *rb, int n, handle t, handle o, handle c), (b, rb, n, t, o, c))                            \
    X(Gather, gather, (const void *b, int n, handle t, void *rb, int rn, handle rt, int root, handle c),                          \
      (b, n, t, rb, rn, rt, root, c))                                                                                             \
    X(Gatherv, gatherv, (const void *b, int n, handle t, void *rb, const int *rn, const int *d, handle rt, int root, handle c),   \
      (b, n, t, rb, rn, d, rt, root, c))                                                                                          \
    X(Scatter, scatter, (const void *b, int n, handle t, void *rb, int rn, handle rt, int root, handle c),                        \
      (b, n, t, rb, rn, rt, root, c))                                                                                             \
    X(Scatterv, scatterv, (const void *b, const int *n, const int *d, handle t, void *rb, int rn, handle rt, int root, handle c), \
      (b, n, d, t, rb, rn, rt, root, c))                                                                                          \
    X(Allgather, allgather, (const void *b, int n, handle t, void *rb, int rn, handle rt, handle c), (b, n, t, rb, rn, rt, c))    \
    X(Allgatherv, allgatherv, (const void *b, int n, handle t, void *rb, const int *rn, const int *d, handle rt, handle c),       \
      (b, n, t, rb, rn, d, rt, c))                                                                                                \
    X(Alltoall, alltoall, (const void *b, int n, handle t, void *rb, int rn, handle rt, handle c), (b, n, t, rb, rn, rt, c))      \
    X(Alltoallv, alltoallv,                                                                                                       \
      (const void *b, const int *n, const int *d, handle t, void *rb, const int *rn, const int *rd, handle rt, handle c),         \
      (b, n, d, t, rb, rn, rd, rt, c))

enum {
#define X(Name, name, parameters, arguments) AT_##Name,
    SENDS(X) OTHERS(X)
#undef X
        KINDS
};

static const char *const names[KINDS] = {
#define X(Name, name, parameters, arguments) #name,
    SENDS(X) OTHERS(X)
#undef X
};

struct account {
    double wall_ms, ms[KINDS];
    int64_t calls[KINDS], sent_short, sent_long, sent_bytes;
};

static struct account own;
static double began;
static int64_t short_bytes;

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * 1e3 + at.tv_nsec / 1e6;
}

static void *next(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (!found) {
        fprintf(stderr, "mpi_profile: no %s in the library\n", name);
        abort();
    }
    return found;
}

static void sent(int count, handle type) {
    static int (*size_of)(handle, int *);
    int size = 0;
    if (!size_of) *(void **)&size_of = next("PMPI_Type_size");
    size_of(type, &size);
    int64_t bytes = (int64_t)count * size;
    own.sent_bytes += bytes;
    *(bytes <= short_bytes ? &own.sent_short : &own.sent_long) += 1;
}

#define COUNTED(Name, parameters, arguments, also)                                                                                \
    int PMPI_##Name parameters {                                                                                                  \
        static int(*call) parameters;                                                                                             \
        if (!call) *(void **)&call = next("PMPI_" #Name);                                                                         \
        double entered = now();                                                                                                      \
        int code = call arguments;                                                                                                \
        own.ms[AT_##Name] += now() - entered;                                                                                        \
        own.calls[AT_##Name]++;                                                                                                   \
        also;                                                                                                                     \
        return code;                                                                                                              \
    }                                                                                                                             \
    int MPI_##Name parameters { return PMPI_##Name arguments; }

#define X(Name, name, parameters, arguments) COUNTED(Name, parameters, arguments, sent(n, t))
SENDS(X)
#undef X
#define X(Name, name, parameters, arguments) COUNTED(Name, parameters, arguments, (void)0)
OTHERS(X)
#undef X

static void begin(void) {
    const char *text = getenv("MPI_PROFILE_SHORT");
    short_bytes = text ? atoll(text) : 32768;
    memset(&own, 0, sizeof own);
    began = now();
}

int PMPI_Init(int *count, char ***words) {
    int code = ((int (*)(int *, char ***))next("PMPI_Init"))(count, words);
    begin();
    return code;
}

int MPI_Init(int *count, char ***words) { return PMPI_Init(count, words); }

int PMPI_Init_thread(int *count, char ***words, int wanted, int *given) {
    int code = ((int (*)(int *, char ***, int, int *))next("PMPI_Init_thread"))(count, words, wanted, given);
    begin();
    return code;
}

int MPI_Init_thread(int *count, char ***words, int wanted, int *given) { return PMPI_Init_thread(count, words, wanted, given); }

static void write_rank(FILE *file, int rank, const struct account *all) {
    double inside = 0;
    for (int at = 0; at < KINDS; at++) inside += all->ms[at];
    fprintf(file, "{\"transport\": \"mpi\", \"launch\": 0, \"rank\": %d, \"wall_ms\": %.3f, \"library_ms\": %.3f, \"library_pct\": %.2f,\n",
            rank, all->wall_ms, inside, 100 * inside / all->wall_ms);
    fprintf(file, "  \"messages\": {\"sent\": %ld, \"sent_bytes\": %ld, \"sent_short\": %ld, \"sent_long\": %ld},\n  \"calls\": [",
            (long)(all->sent_short + all->sent_long), (long)all->sent_bytes, (long)all->sent_short, (long)all->sent_long);
    /* The most expensive first. */
    int is_written[KINDS] = {0};
    for (const char *comma = "";; comma = ",\n    ") {
        int most = -1;
        for (int at = 0; at < KINDS; at++)
            if (all->calls[at] && !is_written[at] && (most < 0 || all->ms[at] > all->ms[most])) most = at;
        if (most < 0) break;
        is_written[most] = 1;
        fprintf(file, "%s{\"call\": \"%s\", \"calls\": %ld, \"total_ms\": %.3f, \"mean_us\": %.3f, \"share_pct\": %.2f}", comma, names[most],
                (long)all->calls[most], all->ms[most], 1e3 * all->ms[most] / all->calls[most], 100 * all->ms[most] / inside);
    }
    fprintf(file, "]}");
}

static void report(void) {
    int rank, ranks;
    ((int (*)(handle, int *))next("PMPI_Comm_rank"))(COMM_WORLD, &rank);
    ((int (*)(handle, int *))next("PMPI_Comm_size"))(COMM_WORLD, &ranks);
    own.wall_ms = now() - began;
    struct account *all = rank ? NULL : malloc(ranks * sizeof *all);
    ((int (*)(const void *, int, handle, void *, int, handle, int, handle))next("PMPI_Gather"))(&own, sizeof own, BYTE, all, sizeof own, BYTE, 0,
                                                                                            COMM_WORLD);
    const char *name = getenv("MPI_PROFILE");
    FILE *file = all ? fopen(name ? name : "profile.json", "w") : NULL;
    if (all && !file) perror("mpi_profile");
    if (file) {
        const char *command = getenv("MPI_PROFILE_COMMAND");
        fprintf(file, "{\"schema\": \"tagwire.bench/2\", \"test\": \"program\", \"command\": \"%s\", \"environment\": {\"ranks\": %d}, \"rows\": [],\n\"profiles\": [",
                command ? command : "", ranks);
        for (int at = 0; at < ranks; at++) {
            if (at) fprintf(file, ",\n");
            write_rank(file, at, &all[at]);
        }
        fprintf(file, "]}\n");
        fclose(file);
    }
    free(all);
}

int PMPI_Finalize(void) {
    report();
    return ((int (*)(void))next("PMPI_Finalize"))();
}

int MPI_Finalize(void) { return PMPI_Finalize(); }
