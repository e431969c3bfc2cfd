/* Cartesian and graph topologies: neighbours that are oneself, twice the same, and none; weights; parts of grids. */
#include "check.h"

#define MOST 32

static int rank, size;

static void grid(void) {
    int dims[2] = {0, 0}, periods[2] = {1, 0}, at[2], back;
    MPI_Comm cart, row;
    OK(MPI_Dims_create(size, 2, dims));
    CHECK(dims[0] * dims[1] == size && dims[0] >= dims[1]);
    OK(MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &cart));
    OK(MPI_Cart_coords(cart, rank, 2, at));
    OK(MPI_Cart_rank(cart, at, &back));
    CHECK(back == rank);
    int up, down, left, right;
    OK(MPI_Cart_shift(cart, 0, 1, &up, &down));
    OK(MPI_Cart_shift(cart, 1, 1, &left, &right));
    int order[4] = {up, down, left, right};
    int own[4], got[4] = {-9, -9, -9, -9};
    for (int i = 0; i < 4; i++) own[i] = 10 * rank + i;
    OK(MPI_Neighbor_alltoall(own, 1, MPI_INT, got, 1, MPI_INT, cart));
    /* What comes from a neighbour is what it sends in the opposite direction. */
    for (int i = 0; i < 4; i++) CHECK(got[i] == (order[i] == MPI_PROC_NULL ? -9 : 10 * order[i] + (i ^ 1)));
    for (int i = 0; i < 4; i++) got[i] = -9;
    MPI_Request request;
    OK(MPI_Ineighbor_allgather(&rank, 1, MPI_INT, got, 1, MPI_INT, cart, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    for (int i = 0; i < 4; i++) CHECK(got[i] == (order[i] == MPI_PROC_NULL ? -9 : order[i]));
    int counts[4] = {1, 2, 1, 2}, from_counts[4] = {2, 1, 2, 1}, at_send[4] = {0, 0, 3, 2}, at_recv[4] = {0, 2, 3, 5}, room[6];
    for (int i = 0; i < 6; i++) room[i] = -9;
    OK(MPI_Neighbor_alltoallv(own, counts, at_send, MPI_INT, room, from_counts, at_recv, MPI_INT, cart));
    CHECK(room[0] == 10 * up && room[1] == 10 * up + 1 && room[2] == 10 * down);
    if (left != MPI_PROC_NULL) CHECK(room[3] == 10 * left + 2 && room[4] == 10 * left + 3);
    else CHECK(room[3] == -9);
    if (right != MPI_PROC_NULL) CHECK(room[5] == 10 * right + 3);
    int keep[2] = {0, 1}, members, none[2] = {0, 0};
    OK(MPI_Cart_sub(cart, keep, &row));
    OK(MPI_Comm_size(row, &members));
    CHECK(members == dims[1]);
    int dimensions;
    OK(MPI_Cartdim_get(row, &dimensions));
    CHECK(dimensions == 1);
    OK(MPI_Comm_free(&row));
    OK(MPI_Cart_sub(cart, none, &row));
    OK(MPI_Cartdim_get(row, &dimensions));
    OK(MPI_Comm_size(row, &members));
    CHECK(dimensions == 0 && members == 1);
    OK(MPI_Neighbor_allgather(NULL, 0, MPI_INT, NULL, 0, MPI_INT, row));
    OK(MPI_Comm_free(&row));
    MPI_Comm copy;
    int kind;
    OK(MPI_Comm_dup(cart, &copy));
    OK(MPI_Topo_test(copy, &kind));
    CHECK(kind == MPI_CART);
    OK(MPI_Comm_free(&copy));
    OK(MPI_Comm_free(&cart));
    /* Less than all: the others have none. */
    int one = 1, open = 0;
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, &one, &open, 1, &cart));
    CHECK((cart == MPI_COMM_NULL) == (rank != 0));
    if (rank == 0) {
        OK(MPI_Cart_shift(cart, 0, 1, &left, &right));
        CHECK(left == MPI_PROC_NULL && right == MPI_PROC_NULL);
        OK(MPI_Comm_free(&cart));
    }
}

static void graph(void) {
    /* Everyone receives twice from the one before, and once from itself; sends alike. */
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    int sources[3] = {before, rank, before}, targets[3] = {next, rank, next}, weights[3] = {3, 1, 2};
    MPI_Comm comm;
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 3, sources, weights, 3, targets, weights, MPI_INFO_NULL, 0, &comm));
    int in, out, weighted, got_sources[3], got_weights[3], got_targets[3], other[3];
    OK(MPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted));
    CHECK(in == 3 && out == 3 && weighted);
    OK(MPI_Dist_graph_neighbors(comm, 3, got_sources, got_weights, 3, got_targets, other));
    CHECK(!memcmp(got_sources, sources, sizeof sources) && !memcmp(other, weights, sizeof weights));
    int own[3] = {100 * rank, 100 * rank + 1, 100 * rank + 2}, got[3];
    OK(MPI_Neighbor_alltoall(own, 1, MPI_INT, got, 1, MPI_INT, comm));
    if (size > 1) CHECK(got[0] == 100 * before && got[1] == 100 * rank + 1 && got[2] == 100 * before + 2);
    MPI_Request request;
    OK(MPI_Neighbor_alltoall_init(own, 1, MPI_INT, got, 1, MPI_INT, comm, MPI_INFO_NULL, &request));
    for (int round = 0; round < 3; round++) {
        own[1] = 5 * round;
        memset(got, 0xff, sizeof got);
        OK(MPI_Start(&request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        if (size > 1) CHECK(got[1] == 5 * round);
    }
    OK(MPI_Request_free(&request));
    MPI_Aint far[3] = {0, 4, 8};
    int counts[3] = {1, 0, 1};
    MPI_Datatype types[3] = {MPI_INT, MPI_DATATYPE_NULL, MPI_INT};
    memset(got, 0xff, sizeof got);
    OK(MPI_Neighbor_alltoallw(own, counts, far, types, got, counts, far, types, comm));
    if (size > 1) CHECK(got[0] == 100 * before && got[1] == -1 && got[2] == 100 * before + 2);
    OK(MPI_Comm_free(&comm));
    /* Rank 0 says all of it, unweighted; some have no neighbours. */
    int edges[MOST], degrees[MOST], nodes[MOST];
    for (int i = 0; i < size; i++) { nodes[i] = i; degrees[i] = i + 1 < size; }
    for (int i = 0; i + 1 < size; i++) edges[i] = i + 1;
    OK(MPI_Dist_graph_create(MPI_COMM_WORLD, rank == 0 ? size : 0, nodes, degrees, edges, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm));
    OK(MPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted));
    CHECK(in == (rank > 0) && out == (rank + 1 < size) && !weighted);
    int from = -1;
    OK(MPI_Neighbor_allgather(&rank, 1, MPI_INT, &from, 1, MPI_INT, comm));
    CHECK(from == rank - 1);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, NULL, MPI_WEIGHTS_EMPTY, 0, NULL, MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, 0, &comm));
    OK(MPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted));
    CHECK(in == 0 && out == 0 && weighted);
    OK(MPI_Neighbor_alltoall(NULL, 1, MPI_INT, NULL, 1, MPI_INT, comm));
    OK(MPI_Comm_free(&comm));
    /* The older kind. */
    int index[MOST], all_edges[2 * MOST];
    for (int i = 0; i < size; i++) { index[i] = 2 * (i + 1); all_edges[2 * i] = (i + 1) % size; all_edges[2 * i + 1] = (i + size - 1) % size; }
    OK(MPI_Graph_create(MPI_COMM_WORLD, size, index, all_edges, 0, &comm));
    int neighbours, two[2], values[2];
    OK(MPI_Graph_neighbors_count(comm, rank, &neighbours));
    CHECK(neighbours == 2);
    OK(MPI_Graph_neighbors(comm, rank, 2, two));
    CHECK(two[0] == next && two[1] == before);
    OK(MPI_Neighbor_allgather(&rank, 1, MPI_INT, values, 1, MPI_INT, comm));
    CHECK(values[0] == next && values[1] == before);
    OK(MPI_Comm_free(&comm));
}

int main(int argc, char **argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    grid();
    graph();
    OK(MPI_Finalize());
    if (rank == 0) printf("neighbours: %d ranks, good\n", size);
    return 0;
}
