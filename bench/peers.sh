#!/usr/bin/env bash
# The tables of docs/performance.md: Tagwire and its peers by turns, on cores 0 and 1, ROUNDS times.
# Needs a quiet machine, a release build, and the peers that are to be compared (bench/libraries.sh):
#
#   ci/peers && cargo build --profile dist && bench/peers.sh [ROUNDS] > rows.txt
#
# Each line: what, then name and value in turn; a peer that is not there has no column. Times in us,
# rates in messages/s, bandwidths in MB/s (10^6; ucx_perftest counts in 2^20, converted here),
# availability in percent.
set -uo pipefail
cd "$(dirname "$0")/.."
. bench/libraries.sh
export I_MPI_PIN_PROCESSOR_LIST=0,1 I_MPI_FABRICS=shm

# The MPI libraries, by name.
declare -A mpi=([mpich]=$mpich)
names=(mpich)
if [ -n "$OPENMPI_PREFIX" ]; then mpi[openmpi]=mpi:$OPENMPI_PREFIX names+=(openmpi); fi
if [ -n "$IMPI_PREFIX" ]; then mpi[intel]=mpi:$IMPI_PREFIX names+=(intel); fi

tw() { "$tagwire" bench "$@" 2>/dev/null | grep -v "^#" | tail -1 | awk '{ print $2 }'; }

# The column of a build: NAME VALUE, where the name says which build it is if there are several.
column() { # name options
    local name="$1${build:+-${build# }}"
    shift
    printf ' %s %s' "$name" "$(tw "$@")"
}

# Tagwire's column for each build, then the MPI libraries'.
row() { # what options [Tagwire's own options] [the others']
    # shellcheck disable=SC2086 # words
    local line="$1$(by_builds column tagwire $2 ${3:-})" name
    for name in "${names[@]}"; do line+=" $name $(tw $2 ${4:-} -t "${mpi[$name]}")"; done
    echo "$line"
}

# One column of what ucx_perftest says.
ucx() { # test size iterations column
    perftest self,sm "$1" "$2" "$3" | awk -v c="$4" '{ print $c }'
}

mb() { awk '{ print $1 * 1.048576 }'; }

for _ in $(seq "${1:-5}"); do
    echo "$(row latency-8 "latency -m 8" "-i 300000" "-i 50000") ucx $(ucx tag_lat 8 500000 4)"
    echo "$(row rate-8 "message-rate -m 8" "-i 20000" "-i 2000") ucx $(ucx tag_bw 8 3000000 7)"
    for size in 1024 8192 65536 1048576 4194304; do
        n=$((size < 100000 ? 30000 : 700))
        echo "$(row latency-$size "latency -m $size") ucx $(ucx tag_lat $size $n 4)"
    done
    for size in 65536 1048576 4194304; do
        n=$((size < 100000 ? 30000 : 1000))
        echo "$(row bandwidth-$size "bandwidth -m $size") ucx $(ucx tag_bw $size $n 6 | mb)"
    done
    for side in send recv; do
        for size in 1024 65536 1048576 4194304; do
            row availability-$side-$size "availability --side $side -m $size"
        done
    done
    for pair in 'posted|none|-i 100000|behind-65536|-i 100000 --posted 65536' \
        'unexpected|none|--unexpected 1|behind-65536|--unexpected 65536'; do
        IFS='|' read -r what first few second many <<<"$pair"
        # shellcheck disable=SC2086 # words
        echo "$what$(by_builds column "$first" latency -m 8 $few)$(by_builds column "$second" latency -m 8 $many)"
    done
    echo "rate-8-level$(by_builds column single message-rate -m 8 -i 20000)$(
        by_builds column multiple message-rate -m 8 -i 20000 --thread-level multiple)"
    row rate-8-4-processes "message-rate -n 4 -m 8" "-i 20000" "-i 500"
    row rate-8-2x2-threads "message-rate -m 8 --threads 2" "-i 5000" "-i 500"
    row rate-8-2x2-threads-bound "message-rate -m 8 --threads 2 --bind 0,1" "-i 5000" "-i 500"
    row ring-4 "ring -n 4"
    echo "idle-percent$(by_builds column tagwire idle --seconds 1)"
done
