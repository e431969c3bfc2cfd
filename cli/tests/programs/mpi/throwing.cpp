/* Exceptions out of functions that the program gives to MPI: the argument says which. */
#include "check.h"

#include <stdexcept>

extern "C" {
static void handle(MPI_Comm *, int *, ...) { throw std::runtime_error("handler"); }

static int remove_attribute(MPI_Comm, int, void *, void *) { throw std::runtime_error("attribute"); }

static void combine(void *, void *, int *, MPI_Datatype *) { throw std::runtime_error("operation"); }
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    int rank, size, key, value = 1, sum = 0, caught = 0;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    try {
        if (!strcmp(what, "handler")) {
            MPI_Errhandler handler;
            OK(MPI_Comm_create_errhandler(handle, &handler));
            OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler));
            OK(MPI_Errhandler_free(&handler));
            MPI_Send(&value, 1, MPI_INT, 99, 0, MPI_COMM_WORLD);
        }
        if (!strcmp(what, "attribute")) {
            OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, remove_attribute, &key, NULL));
            OK(MPI_Comm_set_attr(MPI_COMM_WORLD, key, &value));
            MPI_Comm_delete_attr(MPI_COMM_WORLD, key);
        }
        if (!strcmp(what, "operation")) {
            MPI_Op op;
            OK(MPI_Op_create(combine, 1, &op));
            MPI_Allreduce(&value, &sum, 1, MPI_INT, op, MPI_COMM_WORLD);
        }
    } catch (const std::exception &error) {
        caught = !strcmp(error.what(), what);
    }
    CHECK(caught);
    /* It goes on as before. */
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
    OK(MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(sum == size);
    OK(MPI_Finalize());
    if (rank == 0) printf("%s: %d ranks, good\n", what, size);
    return 0;
}
