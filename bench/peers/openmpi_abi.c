/*
 * Open MPI 5 as a library of the MPI standard ABI, as far as `tagwire bench -t mpi:PATH` calls one:
 * the same bodies then measure it. Handles are exchanged, the rest is passed on by the profiling
 * names (MPI-5.0, section 15.2). A request is a pointer in both.
 *
 *   mpicc -O2 -shared -fPIC -o libmpi_abi.so bench/peers/openmpi_abi.c
 *   tagwire bench latency -t mpi:./libmpi_abi.so --mpiexec $(command -v mpiexec)
 */
#include <mpi.h>

/* The standard's numbers (MPI-5.0, appendix A). */
#define ABI_ERRORS_RETURN ((void *)0x143)
#define ABI_THREAD_MULTIPLE 4096

/* Defines the symbol NAME, whose types are not those of this library's header. */
#define ABI(name, arguments) \
    int abi_##name arguments __asm__("MPI_" #name); \
    int abi_##name arguments

ABI(Init_thread, (int *argc, char ***argv, int required, int *provided)) {
    int level = 0;
    int code = PMPI_Init_thread(argc, argv,
        required >= ABI_THREAD_MULTIPLE ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
    *provided = level == MPI_THREAD_MULTIPLE ? ABI_THREAD_MULTIPLE : 0;
    return code;
}

ABI(Finalize, (void)) { return PMPI_Finalize(); }

/* The benchmarks use one communicator and one datatype. */
ABI(Abort, (void *comm, int code)) {
    (void)comm;
    return PMPI_Abort(MPI_COMM_WORLD, code);
}

ABI(Comm_rank, (void *comm, int *rank)) {
    (void)comm;
    return PMPI_Comm_rank(MPI_COMM_WORLD, rank);
}

ABI(Comm_size, (void *comm, int *size)) {
    (void)comm;
    return PMPI_Comm_size(MPI_COMM_WORLD, size);
}

ABI(Comm_set_errhandler, (void *comm, void *handler)) {
    (void)comm;
    return PMPI_Comm_set_errhandler(MPI_COMM_WORLD,
        handler == ABI_ERRORS_RETURN ? MPI_ERRORS_RETURN : MPI_ERRORS_ARE_FATAL);
}

ABI(Error_string, (int code, char *text, int *length)) {
    return PMPI_Error_string(code, text, length);
}

ABI(Get_library_version, (char *text, int *length)) {
    return PMPI_Get_library_version(text, length);
}

ABI(Send, (const void *data, int count, void *type, int to, int tag, void *comm)) {
    (void)type, (void)comm;
    return PMPI_Send(data, count, MPI_BYTE, to, tag, MPI_COMM_WORLD);
}

ABI(Recv, (void *data, int count, void *type, int from, int tag, void *comm, void *status)) {
    (void)type, (void)comm, (void)status;
    return PMPI_Recv(data, count, MPI_BYTE, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

ABI(Isend, (const void *data, int count, void *type, int to, int tag, void *comm, void **request)) {
    (void)type, (void)comm;
    return PMPI_Isend(data, count, MPI_BYTE, to, tag, MPI_COMM_WORLD, (MPI_Request *)request);
}

ABI(Irecv, (void *data, int count, void *type, int from, int tag, void *comm, void **request)) {
    (void)type, (void)comm;
    return PMPI_Irecv(data, count, MPI_BYTE, from, tag, MPI_COMM_WORLD, (MPI_Request *)request);
}

ABI(Waitall, (int count, void **requests, void *statuses)) {
    (void)statuses;
    return PMPI_Waitall(count, (MPI_Request *)requests, MPI_STATUSES_IGNORE);
}

ABI(Psend_init, (const void *data, int partitions, long long count, void *type, int to, int tag,
    void *comm, void *info, void **request)) {
    (void)type, (void)comm, (void)info;
    return PMPI_Psend_init(data, partitions, count, MPI_BYTE, to, tag, MPI_COMM_WORLD,
        MPI_INFO_NULL, (MPI_Request *)request);
}

ABI(Precv_init, (void *data, int partitions, long long count, void *type, int from, int tag,
    void *comm, void *info, void **request)) {
    (void)type, (void)comm, (void)info;
    return PMPI_Precv_init(data, partitions, count, MPI_BYTE, from, tag, MPI_COMM_WORLD,
        MPI_INFO_NULL, (MPI_Request *)request);
}

ABI(Wait, (void **request, void *status)) {
    (void)status;
    return PMPI_Wait((MPI_Request *)request, MPI_STATUS_IGNORE);
}
