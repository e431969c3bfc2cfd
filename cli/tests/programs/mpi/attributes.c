/* Attributes with their functions, error handlers, infos, buffered sends, memory. */
#include "check.h"

static int copied, deleted, handled;

static int copy(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag) {
    (void)comm; (void)key; (void)extra;
    copied++;
    *(void **)out = (char *)in + 1;
    *flag = 1;
    return MPI_SUCCESS;
}

static int delete(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm; (void)key; (void)value; (void)extra;
    deleted++;
    return MPI_SUCCESS;
}

static void handle(MPI_Comm *comm, int *code, ...) {
    int class;
    CHECK(*comm == MPI_COMM_WORLD);
    OK(MPI_Error_class(*code, &class));
    CHECK(class == MPI_ERR_TAG);
    handled++;
}

int main(int argc, char **argv) {
    int rank, size, key, flag;
    char base[4];
    void *value;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    int *most;
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &most, &flag));
    CHECK(flag && *most >= 32767);
    OK(MPI_Comm_create_keyval(copy, delete, &key, NULL));
    OK(MPI_Comm_set_attr(MPI_COMM_WORLD, key, base));
    MPI_Comm twin;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &twin));
    OK(MPI_Comm_get_attr(twin, key, &value, &flag));
    CHECK(flag && value == base + 1 && copied == 1);
    OK(MPI_Comm_free(&twin));
    CHECK(deleted == 1);
    OK(MPI_Comm_delete_attr(MPI_COMM_WORLD, key));
    CHECK(deleted == 2);
    // A key that was freed is there until the last attribute that has it is deleted.
    int kept = key, others[8];
    OK(MPI_Comm_set_attr(MPI_COMM_WORLD, key, base));
    OK(MPI_Comm_free_keyval(&key));
    CHECK(key == MPI_KEYVAL_INVALID);
    for (int i = 0; i < 8; i++) OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &others[i], NULL));
    key = kept;
    OK(MPI_Comm_free_keyval(&key));
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, kept, &value, &flag));
    CHECK(flag && value == base);
    OK(MPI_Comm_delete_attr(MPI_COMM_WORLD, kept));
    CHECK(deleted == 3);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    CHECK(MPI_Comm_delete_attr(MPI_COMM_WORLD, kept) == MPI_ERR_KEYVAL);
    CHECK(MPI_Comm_free_keyval(&kept) == MPI_ERR_KEYVAL);
    for (int i = 0; i < 8; i++) OK(MPI_Comm_free_keyval(&others[i]));
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_HOST, &most, &flag));
    CHECK(flag && *most == MPI_PROC_NULL);

    char name[MPI_MAX_OBJECT_NAME];
    OK(MPI_Type_get_name(MPI_LONG_LONG, name, &flag));
    CHECK(!strcmp(name, "MPI_LONG_LONG_INT") && flag == 17);

    MPI_Errhandler handler;
    OK(MPI_Comm_create_errhandler(handle, &handler));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler));
    OK(MPI_Errhandler_free(&handler));
    CHECK(MPI_Send(base, 1, MPI_CHAR, 0, -5, MPI_COMM_WORLD) != MPI_SUCCESS && handled == 1);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));

    MPI_Info info;
    char text[16];
    int length = sizeof text;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "key", "value"));
    OK(MPI_Info_get_string(info, "key", &length, text, &flag));
    CHECK(flag && !strcmp(text, "value"));
    OK(MPI_Info_free(&info));

    enum { COUNT = 20 };
    int *memory, bytes = COUNT * (4 * (int)sizeof(int) + MPI_BSEND_OVERHEAD);
    OK(MPI_Alloc_mem(bytes, MPI_INFO_NULL, &memory));
    OK(MPI_Buffer_attach(memory, bytes));
    for (int i = 0; i < COUNT; i++) {
        int out[4] = {rank, i, 2, 3};
        OK(MPI_Bsend(out, 4, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD));
    }
    for (int i = 0; i < COUNT; i++) {
        int in[4];
        OK(MPI_Recv(in, 4, MPI_INT, (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(in[0] == (rank + size - 1) % size && in[1] == i);
    }
    OK(MPI_Buffer_detach(&value, &length));
    CHECK(value == memory && length == bytes);
    OK(MPI_Free_mem(memory));
    if (rank == 0) printf("attributes: %d ranks, good\n", size);
    OK(MPI_Finalize());
    return 0;
}
