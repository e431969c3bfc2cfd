#!/usr/bin/env bash
# The collectives of docs/performance.md: Tagwire and the MPI libraries by turns, ROUNDS times; 2 ranks on cores 0 and 1, then
# 4 ranks on both. Needs what bench/peers.sh needs:
#
#   ci/peers && cargo build --profile dist && bench/collectives.sh [ROUNDS] > rows.txt
#   bench/tables store collectives MACHINE < rows.txt
#
# Each line: what, then name and value in turn, in us: the slowest rank's mean time of an operation.
set -uo pipefail
cd "$(dirname "$0")/.."
. bench/libraries.sh
export I_MPI_PIN_PROCESSOR_LIST=0,1 I_MPI_FABRICS=shm

declare -A mpi=([mpich]=$mpich)
names=(mpich)
if [ -n "$OPENMPI_PREFIX" ]; then mpi[openmpi]=mpi:$OPENMPI_PREFIX names+=(openmpi); fi
if [ -n "$IMPI_PREFIX" ]; then mpi[intel]=mpi:$IMPI_PREFIX names+=(intel); fi

declare -A lines

# Adds a column, NAME VALUE, to the line of each size that a run has.
run() { # name row options
    local name=$1 row=$2 size value
    shift 2
    while read -r size value _; do
        lines[$row-$size]+=" $name $value"
    done < <("$tagwire" bench "$@" 2>/dev/null | grep -v '^#')
}

column() { # row options
    run "tagwire${build:+-${build# }}" "$@"
}

# The rows of a test: Tagwire's column for each build, then those of the MPI libraries.
rows() { # row options
    local name key
    lines=()
    by_builds column "$@"
    for name in "${names[@]}"; do run "$name" "$@" -t "${mpi[$name]}"; done
    for key in "${!lines[@]}"; do echo "$key${lines[$key]}"; done | sort -V
}

for _ in $(seq "${1:-5}"); do
    rows barrier barrier
    rows allreduce allreduce -m 8,1K,16K,64K,1M
    rows bcast bcast -m 8,16K,64K,1M
    rows reduce reduce -m 8,64K,1M
    rows allgather allgather -m 8,64K,1M
    rows alltoall alltoall -m 8,64K,1M
    rows barrier-nonblocking barrier --nonblocking
    rows allreduce-nonblocking allreduce -m 8 --nonblocking
    # MPICH's ranks poll without a yield: few iterations, or a run takes minutes.
    rows barrier-of-4 barrier -n 4 -i 200
    rows allreduce-of-4 allreduce -n 4 -m 8 -i 200
    rows alltoall-of-4 alltoall -n 4 -m 8 -i 200
done
