/* Calls where none is allowed: the argument says which. */
#include "check.h"

static int handled;

static void handle(MPI_Session *session, int *code, ...) {
    handled += *session == MPI_SESSION_NULL && *code != MPI_SUCCESS;
}

/* A first session that cannot join its job: its error goes by the handler that it was to have. */
static int refused(void) {
    MPI_Session session;
    MPI_Errhandler handler;
    CHECK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session) != MPI_SUCCESS);
    CHECK(session == MPI_SESSION_NULL);
    OK(MPI_Session_create_errhandler(handle, &handler));
    CHECK(MPI_Session_init(MPI_INFO_NULL, handler, &session) != MPI_SUCCESS);
    CHECK(handled == 1);
    OK(MPI_Errhandler_free(&handler));
    puts("good");
    return 0;
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    int flag = -1, version, subversion, rank;
    OK(MPI_Initialized(&flag));
    CHECK(flag == 0);
    OK(MPI_Get_version(&version, &subversion));
    CHECK(version == 5);
    if (!strcmp(what, "session")) return refused();
    if (!strcmp(what, "before")) MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    OK(MPI_Init(NULL, NULL));
    if (!strcmp(what, "fatal")) MPI_Send(&rank, 1, MPI_INT, 99, 0, MPI_COMM_WORLD);
    if (!strcmp(what, "truncated")) {
        int long_one[10] = {0}, short_one[4];
        MPI_Request receive;
        OK(MPI_Irecv(short_one, 4, MPI_INT, 0, 9, MPI_COMM_SELF, &receive));
        OK(MPI_Send(long_one, 10, MPI_INT, 0, 9, MPI_COMM_SELF));
        OK(MPI_Wait(&receive, MPI_STATUS_IGNORE));
    }
    if (!strcmp(what, "counts")) {
        int in[40] = {0}, out[40];
        OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
        OK(MPI_Allreduce(in, out, rank ? 40 : 20, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    }
    if (!strcmp(what, "abort")) MPI_Abort(MPI_COMM_WORLD, 7);
    if (!strcmp(what, "leave")) return 3;
    if (!strcmp(what, "unsupported")) {
        // Errors of no communicator.
        OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
        char port[MPI_MAX_PORT_NAME] = "";
        int code = MPI_Open_port(MPI_INFO_NULL, port), class;
        OK(MPI_Error_class(code, &class));
        CHECK(class == MPI_ERR_UNSUPPORTED_OPERATION && !port[0]);
    }
    if (!strcmp(what, "return")) {
        OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
        int code = MPI_Send(&rank, 1, MPI_INT, 99, 0, MPI_COMM_WORLD), class, length;
        char text[MPI_MAX_ERROR_STRING];
        OK(MPI_Error_class(code, &class));
        CHECK(class == MPI_ERR_RANK);
        OK(MPI_Error_string(code, text, &length));
        CHECK(strstr(text, "99") != NULL && (int)strlen(text) == length);
        // No room for a result; errors of no communicator, as until MPI-3.1 and as since MPI-4.0.
        CHECK(MPI_Comm_size(MPI_COMM_WORLD, NULL) == MPI_ERR_ARG);
        CHECK(MPI_Type_contiguous(2, MPI_INT, NULL) == MPI_ERR_ARG);
        CHECK(MPI_Group_union(MPI_GROUP_EMPTY, MPI_GROUP_EMPTY, NULL) == MPI_ERR_ARG);
        CHECK(MPI_Waitall(1, NULL, MPI_STATUSES_IGNORE) == MPI_ERR_ARG);
        OK(MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE));
        CHECK(MPI_Type_size(MPI_DATATYPE_NULL, &length) == MPI_ERR_TYPE);
        OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
        OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
        CHECK(MPI_Type_size(MPI_DATATYPE_NULL, &length) == MPI_ERR_TYPE);
    }
    OK(MPI_Finalize());
    OK(MPI_Finalized(&flag));
    CHECK(flag == 1);
    if (!strcmp(what, "after")) MPI_Barrier(MPI_COMM_WORLD);
    puts("good");
    return 0;
}
