/* Sessions without MPI_Init, one after the other, and then beside the world model. */
#include "check.h"

static int calls;

static void handle(MPI_Session *session, int *code, ...) {
    int class;
    CHECK(*session != MPI_SESSION_NULL);
    OK(MPI_Error_class(*code, &class));
    CHECK(class == MPI_ERR_ARG);
    calls++;
}

/* Adds up the ranks of a set by a communicator of a session. */
static void add(const char *set, int *rank, int *size) {
    MPI_Session session;
    MPI_Errhandler handler;
    MPI_Group group;
    MPI_Comm comm;
    OK(MPI_Session_create_errhandler(handle, &handler));
    OK(MPI_Session_init(MPI_INFO_NULL, handler, &session));
    OK(MPI_Errhandler_free(&handler));
    int length = 0, before = calls;
    CHECK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 99, &length, NULL) == MPI_ERR_ARG);
    CHECK(calls == before + 1);
    OK(MPI_Group_from_session_pset(session, set, &group));
    OK(MPI_Comm_create_from_group(group, "org.tagwire.test", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    OK(MPI_Group_free(&group));
    OK(MPI_Comm_rank(comm, rank));
    OK(MPI_Comm_size(comm, size));
    int sum;
    OK(MPI_Allreduce(rank, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK(sum == *size * (*size - 1) / 2);
    OK(MPI_Comm_disconnect(&comm));
    OK(MPI_Session_finalize(&session));
    CHECK(session == MPI_SESSION_NULL);
}

int main(int argc, char **argv) {
    int rank, size, flag, major, minor;
    MPI_Info info;
    char value[8];
    OK(MPI_Abi_get_version(&major, &minor));
    CHECK(major == 1);
    OK(MPI_Abi_get_info(&info));
    int length = sizeof value;
    OK(MPI_Info_get_string(info, "mpi_count_size", &length, value, &flag));
    CHECK(flag && atoi(value) == (int)sizeof(MPI_Count));
    OK(MPI_Info_free(&info));
    for (int round = 0; round < 3; round++) {
        add("mpi://SELF", &rank, &size);
        CHECK(rank == 0 && size == 1);
        add("mpi://WORLD", &rank, &size);
        OK(MPI_Initialized(&flag));
        CHECK(!flag);
    }
    /* With an argument sessions are all: the job is left at exit. */
    if (argc == 1) {
        int same;
        OK(MPI_Init(&argc, &argv));
        OK(MPI_Comm_rank(MPI_COMM_WORLD, &same));
        CHECK(same == rank);
        add("mpi://WORLD", &rank, &size);
        OK(MPI_Finalize());
    }
    if (rank == 0) printf("sessions: %d ranks, good\n", size);
    return 0;
}
