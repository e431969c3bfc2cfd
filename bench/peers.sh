#!/usr/bin/env bash
# The table of docs/performance.md: Tagwire, UCX and MPICH by turns, on cores 0 and 1, ROUNDS times.
# Needs a quiet machine, a release build, and the peers: pip install mpich libucx-cu12
#
#   cargo build --release && bench/peers.sh [ROUNDS] > rows.txt
#
# Each line: what, then name and value in turn. Times in us, rates in messages/s, bandwidths in MB/s
# (10^6; ucx_perftest counts in 2^20, converted here).
set -uo pipefail
cd "$(dirname "$0")/.."
tagwire=${CARGO_TARGET_DIR:-target}/release/tagwire
ucx=${UCX_PREFIX:-$(python3 -c 'import os, libucx; print(os.path.dirname(libucx.__file__))')}
export UCX_TLS=self,sm UCX_WARN_UNUSED_ENV_VARS=n

tw() { "$tagwire" bench "$@" 2>/dev/null | tail -1 | awk '{ print $2 }'; }

ucx() { # test size iterations column
    local port=$((20000 + RANDOM % 20000)) server
    LD_LIBRARY_PATH=$ucx/lib taskset -c 0 "$ucx/bin/ucx_perftest" -p $port >/dev/null 2>&1 &
    server=$!
    sleep 0.4
    LD_LIBRARY_PATH=$ucx/lib taskset -c 1 "$ucx/bin/ucx_perftest" 127.0.0.1 -p $port -t "$1" -s "$2" -n "$3" -f \
        2>/dev/null | grep -v '^[#+|]' | tail -1 | awk -v c="$4" '{ print $c }'
    kill $server 2>/dev/null
    wait $server 2>/dev/null
}

mb() { awk '{ print $1 * 1.048576 }'; }

for _ in $(seq "${1:-5}"); do
    echo "latency-8 tagwire $(tw latency -m 8 -i 300000) ucx $(ucx tag_lat 8 500000 4) mpich $(tw latency -m 8 -i 50000 -t mpi)"
    echo "rate-8 tagwire $(tw message-rate -m 8 -i 20000) ucx $(ucx tag_bw 8 3000000 7) mpich $(tw message-rate -m 8 -i 2000 -t mpi)"
    for size in 1024 8192 65536 1048576 4194304; do
        n=$((size < 100000 ? 30000 : 700))
        echo "latency-$size tagwire $(tw latency -m $size) ucx $(ucx tag_lat $size $n 4) mpich $(tw latency -m $size -t mpi)"
    done
    for size in 65536 1048576 4194304; do
        n=$((size < 100000 ? 30000 : 1000))
        echo "bandwidth-$size tagwire $(tw bandwidth -m $size) ucx $(ucx tag_bw $size $n 6 | mb) mpich $(tw bandwidth -m $size -t mpi)"
    done
    echo "posted none $(tw latency -m 8 -i 100000) behind-65536 $(tw latency -m 8 -i 100000 --posted 65536)"
    echo "unexpected none $(tw latency -m 8 --unexpected 1) behind-65536 $(tw latency -m 8 --unexpected 65536)"
    echo "rate-8-level single $(tw message-rate -m 8 -i 20000) multiple $(tw message-rate -m 8 -i 20000 --thread-level multiple)"
    echo "rate-8-4-processes tagwire $(tw message-rate -n 4 -m 8 -i 20000) mpich $(tw message-rate -n 4 -m 8 -i 500 -t mpi)"
    echo "rate-8-2x2-threads tagwire $(tw message-rate -m 8 --threads 2 -i 5000)"
    echo "ring-4 tagwire $(tw ring -n 4) mpich $(tw ring -n 4 -t mpi)"
    echo "idle-percent tagwire $(tw idle --seconds 1)"
done
