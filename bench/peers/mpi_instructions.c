/*
 * Sends 8-byte messages between two ranks of an MPI library of the standard ABI, for bench/mpi_instructions.
 * The messages of a turn are there before they are waited for, so that no call that is counted polls in vain:
 *
 *     MPI_Irecv x 16, a barrier | MPI_Isend x 16, a pause | MPI_Wait x 16
 *
 * Arguments: the library, how many turns, and how many receives that nothing comes for are posted before. Callgrind counts within the functions named count_*.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef void *handle; /* of the ABI: MPI-5.0, chapter 20 */
#define COMM_WORLD ((handle)0x101)
#define BYTE ((handle)0x207)
enum { TURN = 16, TAG = 7, OTHER = 8, PAUSE_US = 300000 };

static int (*init)(int *, char ***), (*finalize)(void), (*comm_rank)(handle, int *), (*barrier)(handle);
static int (*isend)(const void *, int, handle, int, int, handle, handle *);
static int (*irecv)(void *, int, handle, int, int, handle, handle *);
static int (*wait_for)(handle *, void *), (*cancel)(handle *);

__attribute__((noinline)) void count_send(const void *data, int to, handle *request) {
    isend(data, 8, BYTE, to, TAG, COMM_WORLD, request);
}

__attribute__((noinline)) void count_receive(void *data, int from, handle *request) {
    irecv(data, 8, BYTE, from, TAG, COMM_WORLD, request);
}

__attribute__((noinline)) void count_wait(handle *request) { wait_for(request, NULL); }

static void *symbol(void *library, const char *name) {
    void *found = dlsym(library, name);
    if (!found) {
        fprintf(stderr, "no %s in the library\n", name);
        exit(2);
    }
    return found;
}

int main(int argc, char **argv) {
    void *library = argc == 4 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
    int posted = argc == 4 ? atoi(argv[3]) : 0;
    handle *others = calloc(posted + 1, sizeof(handle));
    if (!library || !others) {
        fprintf(stderr, "mpi_instructions LIBRARY TURNS POSTED: %s\n", argc == 4 ? dlerror() : "three arguments, please");
        return 2;
    }
    *(void **)&init = symbol(library, "MPI_Init");
    *(void **)&finalize = symbol(library, "MPI_Finalize");
    *(void **)&comm_rank = symbol(library, "MPI_Comm_rank");
    *(void **)&barrier = symbol(library, "MPI_Barrier");
    *(void **)&isend = symbol(library, "MPI_Isend");
    *(void **)&irecv = symbol(library, "MPI_Irecv");
    *(void **)&wait_for = symbol(library, "MPI_Wait");
    *(void **)&cancel = symbol(library, "MPI_Cancel");

    int rank;
    uint64_t data = 1;
    handle requests[TURN];
    init(NULL, NULL);
    comm_rank(COMM_WORLD, &rank);
    uint64_t none;
    for (int i = 0; rank == 1 && i < posted; i++) irecv(&none, 8, BYTE, 0, OTHER, COMM_WORLD, &others[i]);
    for (int turn = 0; turn < atoi(argv[2]); turn++) {
        for (int i = 0; rank == 1 && i < TURN; i++) count_receive(&data, 0, &requests[i]);
        barrier(COMM_WORLD);
        for (int i = 0; rank == 0 && i < TURN; i++) count_send(&data, 1, &requests[i]);
        usleep(PAUSE_US);
        for (int i = 0; i < TURN; i++) count_wait(&requests[i]);
    }
    for (int i = 0; rank == 1 && i < posted; i++) {
        cancel(&others[i]);
        wait_for(&others[i], NULL);
    }
    finalize();
    return 0;
}
