/* What ranks of a trial in C say, and when they end: see events.rs and stage.rs. */
#include <mpi.h>

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int me, size;
static uint64_t seed;
static const char *end_file;
static long checked;
/* How many operations have ended, for how long the rank has slept, and the rank that it waits for: see stalls.rs. */
static long ended;
static double slept;
static int waits_for = -1;
/* What it does at its steps: see stage.rs. */
static long sleeps_us, stall_ms;
static char is_lost[64];
static int has_joined, descriptors_before;

static void say(const char *text) {
    printf("@ %d %s\n", me, text);
    fflush(stdout);
}

/* Says what is wrong, and ends the rank. */
static void wrong(const char *what, long a, long b) {
    printf("@ %d wrong %s (%ld, %ld)\n", me, what, a, b);
    fflush(stdout);
    _exit(1);
}

static void lose(int peer) {
    if (is_lost[peer]) return;
    is_lost[peer] = 1;
    printf("@ %d lost %d\n", me, peer);
    fflush(stdout);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + 1e-9 * time.tv_nsec;
}

static void sleep_for(long microseconds) {
    struct timespec time = {microseconds / 1000000, microseconds % 1000000 * 1000};
    nanosleep(&time, NULL);
}

/* Marks a step, in which so much has ended and was checked. Returns whether the program is to end. */
static int step(long count) {
    static double said, looked;
    static int ends;
    double began = now();
    checked += count;
    ended += count;
    if (sleeps_us) sleep_for(sleeps_us);
    double time = now();
    if (sleeps_us) slept += time - began;
    if (time - said > 0.05) {
        said = time;
        printf("@ %d alive %ld %ld", me, ended, (long)(1e3 * slept));
        if (waits_for >= 0) printf(" %d", waits_for);
        printf("\n");
        fflush(stdout);
    }
    if (stall_ms && ended > 0) {
        double until = time + 1e-3 * stall_ms;
        stall_ms = 0;
        while (now() < until) {
            sleep_for(10000);
            step(0);
        }
    }
    if (!ends && time - looked > 0.01) {
        looked = time;
        ends = access(end_file, F_OK) == 0;
    }
    return ends;
}

/* Whether a call has ended because a rank has; anything but that and success is wrong. */
static int is_death(const char *what, int code) {
    int class;
    if (code == MPI_SUCCESS) return 0;
    MPI_Error_class(code, &class);
    if (class != MPI_ERR_PROC_ABORTED) wrong(what, code, class);
    return 1;
}

/* Numbers of chance, the same for the same start. */
static uint64_t chance(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

static uint64_t stream(int from, int to) {
    return seed ^ (uint64_t)from << 40 ^ (uint64_t)to << 20;
}

static int descriptors(void) {
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    if (!folder) wrong("/proc/self/fd", 0, 0);
    while (readdir(folder)) count++;
    closedir(folder);
    return count;
}

/* The library ends a process that cannot join. */
static void leave(void) {
    if (!has_joined) say("unopened MPI_Init has ended the process");
}

static void begin(int argc, char **argv) {
    const char *rank = getenv("TAGWIRE_RANK");
    me = rank ? atoi(rank) : 0;
    if (argc < 5) wrong("a seed, a file, and what steps do", argc, 0);
    seed = strtoull(argv[1], NULL, 10);
    end_file = argv[2];
    sleeps_us = strtol(argv[3], NULL, 10);
    stall_ms = strtol(argv[4], NULL, 10);
    descriptors_before = descriptors();
    atexit(leave);
    int code = MPI_Init(&argc, &argv);
    if (code != MPI_SUCCESS) wrong("MPI_Init", code, 0);
    has_joined = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    say("ready");
}

static int finish(void) {
    printf("@ %d closing %ld\n", me, checked);
    fflush(stdout);
    MPI_Finalize();
    /* Until the process ends the library keeps its connection to the store, its memory, and two of each process: one of its
       contact, one of what boards and windows share with it. */
    int more = descriptors() - descriptors_before - (2 + 2 * size);
    printf("@ %d done %d\n", me, more > 0 ? more : 0);
    fflush(stdout);
    return 0;
}
