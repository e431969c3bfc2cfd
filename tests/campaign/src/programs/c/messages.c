/* Every rank exchanges messages of a derived type with every other, in pairs of rounds; who dies is left out. */
#include "campaign.h"

enum { MOST = 60000, ENDS = 1 };

static int outgoing[2 * MOST], incoming[2 * MOST];

/* How many elements a round has, and whether its send is synchronous. */
static int draw(int from, int to, long round, int *synchronous) {
    static const int bounds[] = {1, 20, 3000, MOST};
    uint64_t state = stream(from, to) ^ round;
    *synchronous = chance(&state) % 4 == 0;
    int bound = bounds[chance(&state) % 4];
    return 1 + chance(&state) % bound;
}

/* Exchanges one round with a rank. Returns whether both have said that it is the last. */
static int exchange(int peer, long round, int ends, MPI_Datatype spread) {
    int synchronous, ignored, flag;
    int count = draw(me, peer, round, &synchronous), expected = draw(peer, me, round, &ignored);
    uint64_t state = stream(me, peer) ^ round << 1;
    for (int i = 0; i < count; i++) outgoing[2 * i] = chance(&state);
    memset(incoming, 0, 2 * sizeof(int) * expected);
    MPI_Request requests[2];
    MPI_Status statuses[2], one;
    int tag = ends ? ENDS : 0, code;
    if (is_death("MPI_Irecv", MPI_Irecv(incoming, expected, spread, peer, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[0]))) {
        lose(peer);
        return 1;
    }
    code = synchronous ? MPI_Issend(outgoing, count, spread, peer, tag, MPI_COMM_WORLD, &requests[1])
                       : MPI_Isend(outgoing, count, spread, peer, tag, MPI_COMM_WORLD, &requests[1]);
    int dead = is_death("MPI_Isend", code);
    if (dead) requests[1] = MPI_REQUEST_NULL;
    waits_for = peer;
    for (int i = 0; i < 2; i++) {
        if (requests[i] == MPI_REQUEST_NULL) continue;
        for (flag = 0; !flag;) {
            code = MPI_Test(&requests[i], &flag, &one);
            if (code != MPI_SUCCESS) break;
            step(0);
        }
        ended++;
        statuses[i] = one;
        dead |= is_death(i ? "the send" : "the receive", code);
    }
    waits_for = -1;
    if (dead) {
        lose(peer);
        return 1;
    }
    int got;
    MPI_Get_count(&statuses[0], spread, &got);
    if (got != expected) wrong("a message has another length", got, expected);
    state = stream(peer, me) ^ round << 1;
    for (int i = 0; i < expected; i++) {
        if (incoming[2 * i] != (int)chance(&state)) wrong("an element of a message is wrong", i, round);
    }
    step(1);
    return ends && statuses[0].MPI_TAG == ENDS;
}

int main(int argc, char **argv) {
    begin(argc, argv);
    MPI_Datatype spread, one;
    MPI_Type_vector(1, 1, 2, MPI_INT, &one);
    MPI_Type_create_resized(one, 0, 2 * sizeof(int), &spread);
    MPI_Type_commit(&spread);
    static char over[64];
    int left = size - 1;
    /* In round r the pairs are those whose numbers sum to r: each rank has one partner at a time. */
    for (long round = 0; left > 0; round++) {
        int peer = (int)((round % size - me + size) % size);
        if (peer == me || over[peer]) {
            step(0);
            continue;
        }
        if (exchange(peer, round, step(0), spread)) {
            over[peer] = 1;
            left--;
        }
    }
    MPI_Type_free(&spread);
    MPI_Type_free(&one);
    return finish();
}
