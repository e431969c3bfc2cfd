/* Functions of the program that call MPI: attributes, error handlers, operations, generalized requests; the order of deletion. */
#include "check.h"

static int rank, size, deleted, order[8], expected_last[2], key_comm, key_type, errors, last;

static int copy_attribute(MPI_Comm comm, int key, void *extra, void *value, void *out, int *flag) {
    int members;
    MPI_Comm other;
    OK(MPI_Comm_size(comm, &members));
    CHECK(members == size && extra == &deleted && key == key_comm);
    /* Of another communicator, inside of the duplication of this one. */
    OK(MPI_Comm_dup(MPI_COMM_SELF, &other));
    OK(MPI_Comm_free(&other));
    *(void **)out = (char *)value + 1;
    *flag = 1;
    return MPI_SUCCESS;
}

static int delete_attribute(MPI_Comm comm, int key, void *value, void *extra) {
    int members;
    (void)value;
    CHECK(extra == &deleted);
    OK(MPI_Comm_size(comm, &members));
    order[deleted++ % 8] = key;
    return MPI_SUCCESS;
}

static int refuse(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm; (void)key; (void)value; (void)extra;
    return MPI_ERR_OTHER;
}

static int type_copy(MPI_Datatype type, int key, void *extra, void *value, void *out, int *flag) {
    (void)key; (void)extra;
    int bytes;
    OK(MPI_Type_size(type, &bytes));
    *(void **)out = (char *)value + bytes;
    *flag = 1;
    return MPI_SUCCESS;
}

static void handle(MPI_Comm *comm, int *code, ...) {
    int class, length;
    char text[MPI_MAX_ERROR_STRING], name[MPI_MAX_OBJECT_NAME];
    OK(MPI_Error_class(*code, &class));
    OK(MPI_Error_string(*code, text, &length));
    OK(MPI_Comm_get_name(*comm, name, &length));
    last = class;
    errors++;
}

/* Composition of linear maps: not commutative. */
typedef struct { long a, b; } Map;

static void compose(void *in, void *inout, int *count, MPI_Datatype *type) {
    int bytes;
    MPI_Aint lower, extent;
    OK(MPI_Type_size(*type, &bytes));
    OK(MPI_Type_get_extent(*type, &lower, &extent));
    CHECK(bytes == 16);
    for (int i = 0; i < *count; i++) {
        Map *left = (Map *)((char *)in + i * extent), *right = (Map *)((char *)inout + i * extent);
        Map both = {left->a * right->a % 1000003, (left->a * right->b + left->b) % 1000003};
        *right = both;
    }
}

static void compose_c(void *in, void *inout, MPI_Count *count, MPI_Datatype *type) {
    int n = (int)*count;
    compose(in, inout, &n, type);
}

static void operations(void) {
    MPI_Datatype map, spaced;
    MPI_Op op, op_c;
    OK(MPI_Type_contiguous(2, MPI_LONG, &map));
    OK(MPI_Type_create_resized(map, 0, 24, &spaced));
    OK(MPI_Type_commit(&map));
    OK(MPI_Type_commit(&spaced));
    OK(MPI_Op_create(compose, 0, &op));
    OK(MPI_Op_create_c(compose_c, 0, &op_c));
    Map own[20], got[20], expected[20], prefix[20];
    struct { Map map; long gap; } wide[20], into[20];
    for (int i = 0; i < 20; i++) {
        expected[i] = (Map){1, 0};
        for (int r = 0; r < size; r++) {
            Map next = {r + 2, i + r};
            expected[i] = (Map){expected[i].a * next.a % 1000003, (expected[i].a * next.b + expected[i].b) % 1000003};
            if (r == rank) { own[i] = next; prefix[i] = expected[i]; }
        }
        wide[i].map = own[i];
        wide[i].gap = into[i].gap = 77;
    }
    for (int which = 0; which < 2; which++) {
        MPI_Op one = which ? op_c : op;
        OK(MPI_Allreduce(own, got, 20, map, one, MPI_COMM_WORLD));
        CHECK(!memcmp(got, expected, sizeof got));
        OK(MPI_Allreduce(wide, into, 20, spaced, one, MPI_COMM_WORLD));
        for (int i = 0; i < 20; i++) CHECK(!memcmp(&into[i].map, &expected[i], sizeof(Map)) && into[i].gap == 77);
        OK(MPI_Scan(own, got, 20, map, one, MPI_COMM_WORLD));
        CHECK(!memcmp(got, prefix, sizeof got));
        for (int root = 0; root < size; root++) {
            OK(MPI_Reduce(own, got, 20, map, one, root, MPI_COMM_WORLD));
            if (rank == root) CHECK(!memcmp(got, expected, sizeof got));
        }
        MPI_Request request;
        OK(MPI_Iallreduce(wide, into, 20, spaced, one, MPI_COMM_WORLD, &request));
        /* Freed while they are in use. */
        if (which) { OK(MPI_Op_free(&op)); OK(MPI_Op_free(&op_c)); OK(MPI_Type_free(&spaced)); OK(MPI_Type_free(&map)); }
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        for (int i = 0; i < 20; i++) CHECK(!memcmp(&into[i].map, &expected[i], sizeof(Map)));
    }
    CHECK(op == MPI_OP_NULL && map == MPI_DATATYPE_NULL);
}

static void attributes(void) {
    MPI_Comm copy, again;
    void *value;
    int flag, refused, second, third;
    OK(MPI_Comm_create_keyval(copy_attribute, delete_attribute, &key_comm, &deleted));
    OK(MPI_Comm_set_attr(MPI_COMM_WORLD, key_comm, (void *)8));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &copy));
    OK(MPI_Comm_get_attr(copy, key_comm, &value, &flag));
    CHECK(flag && value == (void *)9);
    OK(MPI_Comm_dup_with_info(copy, MPI_INFO_NULL, &again));
    OK(MPI_Comm_get_attr(again, key_comm, &value, &flag));
    CHECK(flag && value == (void *)10);
    OK(MPI_Comm_set_attr(again, key_comm, (void *)20));
    CHECK(deleted == 1);
    OK(MPI_Comm_free(&again));
    CHECK(deleted == 2 && again == MPI_COMM_NULL);
    /* A function that refuses keeps the communicator. */
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, refuse, &refused, NULL));
    OK(MPI_Comm_set_attr(copy, refused, NULL));
    OK(MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN));
    CHECK(MPI_Comm_delete_attr(copy, refused) != MPI_SUCCESS);
    OK(MPI_Comm_get_attr(copy, key_comm, &value, &flag));
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag));
    CHECK(flag && *(int *)value >= 32767);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, &value, &flag));
    CHECK(flag && (*(int *)value == 0 || *(int *)value == 1));
    /* Freed key values keep their attributes, whose functions are still called. */
    int known = key_comm;
    OK(MPI_Comm_free_keyval(&known));
    CHECK(known == MPI_KEYVAL_INVALID);
    OK(MPI_Comm_delete_attr(MPI_COMM_WORLD, key_comm));
    CHECK(deleted == 3);
    /* At the end in the opposite order. */
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_attribute, &second, &deleted));
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_attribute, &third, &deleted));
    OK(MPI_Comm_set_attr(MPI_COMM_SELF, third, NULL));
    OK(MPI_Comm_set_attr(MPI_COMM_SELF, second, NULL));
    expected_last[0] = second;
    expected_last[1] = third;
    MPI_Datatype type, dup;
    OK(MPI_Type_create_keyval(type_copy, MPI_TYPE_NULL_DELETE_FN, &key_type, NULL));
    OK(MPI_Type_contiguous(3, MPI_INT, &type));
    OK(MPI_Type_set_attr(type, key_type, (void *)100));
    OK(MPI_Type_dup(type, &dup));
    OK(MPI_Type_get_attr(dup, key_type, &value, &flag));
    CHECK(flag && value == (void *)112);
    OK(MPI_Type_free(&dup));
    OK(MPI_Type_free(&type));
    OK(MPI_Type_free_keyval(&key_type));
}

static void handlers(void) {
    MPI_Errhandler handler, other;
    MPI_Comm comm;
    MPI_Request request;
    MPI_Status statuses[2];
    MPI_Request both[2];
    int values[4] = {1, 2, 3, 4}, one;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_create_errhandler(handle, &handler));
    OK(MPI_Comm_set_errhandler(comm, handler));
    OK(MPI_Comm_get_errhandler(comm, &other));
    CHECK(other == handler);
    OK(MPI_Errhandler_free(&other));
    OK(MPI_Errhandler_free(&handler));
    CHECK(MPI_Send(values, 1, MPI_INT, size, 0, comm) == MPI_ERR_RANK && errors == 1 && last == MPI_ERR_RANK);
    CHECK(MPI_Send(values, -1, MPI_INT, 0, 0, comm) == MPI_ERR_COUNT && last == MPI_ERR_COUNT);
    CHECK(MPI_Send(values, 1, MPI_DATATYPE_NULL, 0, 0, comm) == MPI_ERR_TYPE);
    CHECK(MPI_Send(values, 1, MPI_INT, 0, -5, comm) == MPI_ERR_TAG);
    CHECK(MPI_Bcast(values, 1, MPI_INT, size, comm) == MPI_ERR_ROOT);
    CHECK(MPI_Allreduce(values, &one, 1, MPI_FLOAT, MPI_BAND, comm) == MPI_ERR_OP);
    CHECK(MPI_Recv(values, 1, MPI_INT, MPI_ANY_SOURCE, -9, comm, MPI_STATUS_IGNORE) == MPI_ERR_TAG);
    CHECK(errors == 7);
    /* Truncation: by a receive, a test, and one of two. */
    OK(MPI_Isend(values, 4, MPI_INT, rank, 1, comm, &request));
    CHECK(MPI_Recv(&one, 1, MPI_INT, rank, 1, comm, &statuses[0]) == MPI_ERR_TRUNCATE);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Irecv(&one, 1, MPI_INT, rank, 2, comm, &both[0]));
    OK(MPI_Irecv(&values[1], 1, MPI_INT, rank, 3, comm, &both[1]));
    OK(MPI_Send(values, 2, MPI_INT, rank, 2, comm));
    OK(MPI_Send(values, 1, MPI_INT, rank, 3, comm));
    CHECK(MPI_Waitall(2, both, statuses) == MPI_ERR_IN_STATUS && last == MPI_ERR_IN_STATUS);
    int class;
    OK(MPI_Error_class(statuses[0].MPI_ERROR, &class));
    CHECK(class == MPI_ERR_TRUNCATE && statuses[1].MPI_ERROR == MPI_SUCCESS);
    CHECK(both[0] == MPI_REQUEST_NULL && both[1] == MPI_REQUEST_NULL);
    OK(MPI_Comm_free(&comm));
    int code, length;
    char text[MPI_MAX_ERROR_STRING];
    OK(MPI_Add_error_class(&class));
    OK(MPI_Add_error_code(class, &code));
    OK(MPI_Add_error_string(code, "of the program"));
    OK(MPI_Error_string(code, text, &length));
    CHECK(!strcmp(text, "of the program") && length == (int)strlen(text));
    OK(MPI_Error_class(code, &last));
    CHECK(last == class && class > MPI_ERR_LASTCODE);
}

int main(int argc, char **argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    operations();
    attributes();
    handlers();
    int before = deleted;
    OK(MPI_Finalize());
    CHECK(deleted == before + 2);
    CHECK(order[before % 8] == expected_last[0] && order[(before + 1) % 8] == expected_last[1]);
    if (rank == 0) printf("callbacks: %d ranks, good\n", size);
    return 0;
}
