/* Messages of every mode, requests in every way, probes, wildcards and derived types; each rank with each other. */
#include "check.h"

enum { LONG = 200000, ROUNDS = 5 };

static int rank, size;

static void modes(void) {
    int next = (rank + 1) % size, last = (rank + size - 1) % size;
    for (int length = 0; length <= LONG; length = length * 9 + 1) {
        int *out = malloc((length + 1) * sizeof(int)), *in = malloc((length + 1) * sizeof(int));
        for (int i = 0; i < length; i++) out[i] = rank * 7 + i;
        MPI_Request requests[2];
        MPI_Status statuses[2];
        OK(MPI_Irecv(in, length, MPI_INT, last, length, MPI_COMM_WORLD, &requests[0]));
        OK(MPI_Issend(out, length, MPI_INT, next, length, MPI_COMM_WORLD, &requests[1]));
        OK(MPI_Waitall(2, requests, statuses));
        int count;
        OK(MPI_Get_count(&statuses[0], MPI_INT, &count));
        CHECK(count == length && statuses[0].MPI_SOURCE == last && statuses[0].MPI_TAG == length);
        for (int i = 0; i < length; i++) CHECK(in[i] == last * 7 + i);
        memset(in, 0, length * sizeof(int));
        OK(MPI_Sendrecv(out, length, MPI_INT, next, 1, in, length, MPI_INT, last, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        for (int i = 0; i < length; i++) CHECK(in[i] == last * 7 + i);
        OK(MPI_Sendrecv_replace(out, length, MPI_INT, next, 2, last, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        for (int i = 0; i < length; i++) CHECK(out[i] == last * 7 + i);
        free(out);
        free(in);
    }
}

/* Rank 0 probes for what the others send, in any order. */
static void probes(void) {
    if (rank > 0) {
        for (int round = 0; round < ROUNDS; round++) {
            int length = 10 * rank + round;
            char *text = malloc(length);
            memset(text, 'a' + rank, length);
            OK(MPI_Send(text, length, MPI_CHAR, 0, round, MPI_COMM_WORLD));
            free(text);
        }
        return;
    }
    for (int left = (size - 1) * ROUNDS; left > 0; left--) {
        MPI_Status status;
        MPI_Message message;
        int length;
        if (left % 2) {
            OK(MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &message, &status));
        } else {
            int flag = 0;
            while (!flag) OK(MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &message, &status));
        }
        OK(MPI_Get_count(&status, MPI_CHAR, &length));
        CHECK(length == 10 * status.MPI_SOURCE + status.MPI_TAG);
        char *text = malloc(length);
        OK(MPI_Mrecv(text, length, MPI_CHAR, &message, MPI_STATUS_IGNORE));
        CHECK(message == MPI_MESSAGE_NULL);
        for (int i = 0; i < length; i++) CHECK(text[i] == 'a' + status.MPI_SOURCE);
        free(text);
    }
}

/* A struct with a gap, every second one of an array. */
static void types(void) {
    struct particle { double x[3]; int id; char tag; } out[8], in[8];
    int lengths[3] = {3, 1, 1};
    MPI_Aint at[3] = {offsetof(struct particle, x), offsetof(struct particle, id), offsetof(struct particle, tag)};
    MPI_Datatype of[3] = {MPI_DOUBLE, MPI_INT, MPI_CHAR}, plain, one, half;
    OK(MPI_Type_create_struct(3, lengths, at, of, &plain));
    OK(MPI_Type_create_resized(plain, 0, sizeof(struct particle), &one));
    OK(MPI_Type_vector(4, 1, 2, one, &half));
    OK(MPI_Type_commit(&half));
    int bytes;
    MPI_Aint lower, extent;
    OK(MPI_Type_size(half, &bytes));
    OK(MPI_Type_get_extent(half, &lower, &extent));
    CHECK(bytes == 4 * 29 && lower == 0 && extent == 7 * (MPI_Aint)sizeof(struct particle));
    memset(out, 0, sizeof out);
    memset(in, 0xff, sizeof in);
    for (int i = 0; i < 8; i++) { out[i].x[2] = rank + i; out[i].id = i; out[i].tag = 'x'; }
    int next = (rank + 1) % size, last = (rank + size - 1) % size;
    OK(MPI_Sendrecv(out, 1, half, next, 0, in, 1, half, last, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int i = 0; i < 8; i++) {
        if (i % 2) CHECK(in[i].id == -1 && in[i].tag == (char)-1);
        else CHECK(in[i].x[2] == last + i && in[i].id == i && in[i].tag == 'x');
    }
    char packed[256];
    int position = 0;
    OK(MPI_Pack(out, 1, half, packed, sizeof packed, &position, MPI_COMM_WORLD));
    CHECK(position == bytes);
    memset(in, 0, sizeof in);
    position = 0;
    OK(MPI_Unpack(packed, sizeof packed, &position, in, 1, half, MPI_COMM_WORLD));
    CHECK(in[6].x[2] == rank + 6 && in[5].id == 0);
    OK(MPI_Type_free(&half));
    OK(MPI_Type_free(&one));
    OK(MPI_Type_free(&plain));
    CHECK(half == MPI_DATATYPE_NULL);
}

static void persistent(void) {
    int next = (rank + 1) % size, last = (rank + size - 1) % size, out = 0, in = -1;
    MPI_Request requests[2];
    OK(MPI_Send_init(&out, 1, MPI_INT, next, 3, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Recv_init(&in, 1, MPI_INT, last, 3, MPI_COMM_WORLD, &requests[1]));
    for (int round = 0; round < 20; round++) {
        out = rank + 100 * round;
        OK(MPI_Startall(2, requests));
        int done = 0, flag;
        while (done < 2) {
            int index;
            OK(MPI_Testany(2, requests, &index, &flag, MPI_STATUS_IGNORE));
            done += flag && index != MPI_UNDEFINED;
        }
        CHECK(in == last + 100 * round);
    }
    OK(MPI_Request_free(&requests[0]));
    OK(MPI_Request_free(&requests[1]));
}

int main(int argc, char **argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    for (int round = 0; round < ROUNDS; round++) {
        modes();
        OK(MPI_Barrier(MPI_COMM_WORLD));
        probes();
        /* Rank 0 has taken any message. */
        OK(MPI_Barrier(MPI_COMM_WORLD));
        types();
        persistent();
    }
    if (rank == 0) printf("messages: %d ranks, good\n", size);
    OK(MPI_Finalize());
    return 0;
}
