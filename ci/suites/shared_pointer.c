/* Times MPI_File_write_shared of 8 bytes, and MPI_File_open with MPI_File_close: prints microseconds of each, of the slowest rank.
 *
 *     shared_pointer FILE
 */
#include <mpi.h>
#include <stdio.h>

static double slowest(double began, int count) {
    double own = (MPI_Wtime() - began) / count * 1e6, all;
    MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all;
}

static MPI_File opened(const char *name, int mode) {
    MPI_File file;
    if (MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file) != MPI_SUCCESS) {
        fprintf(stderr, "%s cannot be opened\n", name);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return file;
}

static void write_shared(MPI_File file, int count) {
    const long long value = 7;
    for (int i = 0; i < count; i++)
        if (MPI_File_write_shared(file, &value, 8, MPI_BYTE, MPI_STATUS_IGNORE) != MPI_SUCCESS)
            MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char **argv) {
    enum { WARM = 100, WRITES = 2000, OPENS = 200 };
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const char *name = argv[1];
    MPI_File file = opened(name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
    write_shared(file, WARM);
    MPI_Barrier(MPI_COMM_WORLD);
    double began = MPI_Wtime();
    write_shared(file, WRITES);
    double written = slowest(began, WRITES);
    MPI_File_close(&file);
    file = opened(name, MPI_MODE_CREATE | MPI_MODE_RDWR);
    MPI_File_close(&file);
    began = MPI_Wtime();
    for (int i = 0; i < OPENS; i++) {
        file = opened(name, MPI_MODE_RDWR);
        MPI_File_close(&file);
    }
    double open_and_close = slowest(began, OPENS);
    if (rank == 0) {
        printf("write_shared %.3f\nopen_close %.3f\n", written, open_and_close);
        MPI_File_delete(name, MPI_INFO_NULL);
    }
    MPI_Finalize();
    return 0;
}
