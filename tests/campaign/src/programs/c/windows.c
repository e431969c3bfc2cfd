/* Every rank writes into a part of its own of every other's window, reads it back, and counts in a word that all add to. */
#include "campaign.h"

enum { PART = 4096 };

static long *memory;
static long block[PART], back[PART];

/* One round with a rank: put, get, and an addition. Returns whether all members live. */
static int visit(MPI_Win win, int peer, long round, long *added) {
    static const int bounds[] = {1, 64, PART};
    uint64_t state = stream(me, peer) ^ round;
    int count = 1 + chance(&state) % bounds[chance(&state) % 3];
    for (int i = 0; i < count; i++) block[i] = chance(&state);
    memset(back, 0, sizeof back);
    MPI_Aint place = 1 + (MPI_Aint)me * PART;
    long one = 1, before = -1;
    int code = MPI_Win_lock(MPI_LOCK_SHARED, peer, 0, win);
    if (code == MPI_SUCCESS) {
        code = MPI_Put(block, count, MPI_LONG, peer, place, count, MPI_LONG, win);
        if (code == MPI_SUCCESS) code = MPI_Win_flush(peer, win);
        if (code == MPI_SUCCESS) code = MPI_Get(back, count, MPI_LONG, peer, place, count, MPI_LONG, win);
        if (code == MPI_SUCCESS) code = MPI_Fetch_and_op(&one, &before, MPI_LONG, peer, 0, MPI_SUM, win);
        int unlocked = MPI_Win_unlock(peer, win);
        if (code == MPI_SUCCESS) code = unlocked;
    }
    /* It may be another member that died: the window is of all. */
    if (is_death("an access", code)) return 0;
    for (int i = 0; i < count; i++) {
        if (back[i] != block[i]) wrong("what was put is not what is got", i, round);
    }
    /* Others add too, where there are others, and nobody takes away. */
    if (before < *added || (size == 2 && before != *added)) wrong("an addition is lost, or came twice", before, *added);
    *added += 1;
    return 1;
}

/* Every rank that lives tells every other that it has done with it; who died is named. */
static void meet(void) {
    for (int peer = 0; peer < size; peer++) {
        int code = MPI_SUCCESS;
        if (peer == me || is_lost[peer]) continue;
        MPI_Request requests[2];
        code = MPI_Irecv(NULL, 0, MPI_INT, peer, 1, MPI_COMM_WORLD, &requests[0]);
        if (code == MPI_SUCCESS) {
            code = MPI_Isend(NULL, 0, MPI_INT, peer, 1, MPI_COMM_WORLD, &requests[1]);
            if (code != MPI_SUCCESS) requests[1] = MPI_REQUEST_NULL;
            waits_for = peer;
            for (int i = 0; i < 2; i++) {
                for (int flag = 0, over; !flag; step(0)) {
                    over = MPI_Test(&requests[i], &flag, MPI_STATUS_IGNORE);
                    if (code == MPI_SUCCESS) code = over;
                    if (over != MPI_SUCCESS) break;
                }
                ended++;
            }
            waits_for = -1;
        }
        if (is_death("a last message", code)) lose(peer);
    }
}

int main(int argc, char **argv) {
    begin(argc, argv);
    MPI_Win win;
    MPI_Aint bytes = sizeof(long) * (1 + (MPI_Aint)size * PART);
    int code;
    if (seed % 2) {
        code = MPI_Win_allocate(bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    } else {
        memory = calloc(1, bytes);
        code = MPI_Win_create(memory, bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    }
    if (is_death("making the window", code)) {
        say("broken");
        meet();
        return finish();
    }
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    /* What an allocated window has in it nobody says. */
    memory[0] = 0;
    long added[64] = {0};
    int alive = !is_death("MPI_Barrier", MPI_Barrier(MPI_COMM_WORLD));
    for (long round = 0; !step(0) && alive; round++) {
        for (int peer = 0; peer < size && alive; peer++) {
            if (peer == me) continue;
            alive = visit(win, peer, round, &added[peer]);
            step(alive);
        }
    }
    /* The driver knows whether somebody died; who it was, the others say. */
    if (!alive) say("broken");
    /* Nobody frees memory that another still reaches; the dead do not come. */
    meet();
    for (int peer = 0; peer < size; peer++) alive &= !is_lost[peer];
    code = MPI_Win_free(&win);
    if (alive) is_death("MPI_Win_free", code);
    return finish();
}
