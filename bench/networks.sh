#!/usr/bin/env bash
# The tables of docs/performance.md on networks: what ob1 and cm add to libfabric and UCX, and the MPI libraries
# over TCP. All by turns, ROUNDS times, on cores 0 and 1; medians, with the extremes in brackets.
# Needs a quiet machine, a release build, and the libraries that bench/libraries.sh names:
#
#   ci/peers && cargo build --profile dist && bench/networks.sh [ROUNDS] > tables.md
set -uo pipefail
cd "$(dirname "$0")/.."
. bench/libraries.sh
rows=$(mktemp)
trap 'rm -f "$rows"' EXIT
note() { awk -v what="$1" -v way="$2" '/^[0-9]/ { print what "|" way "|" $1 "|" $2 "|" $4 }' >>"$rows"; }

# One row of each build: with which libraries, what it is called, and the arguments of `tagwire bench`.
ours() { by_builds one_of_ours "$@"; } # library what name arguments...
one_of_ours() {
    local with=$1 what=$2 name=$3
    shift 3
    $with timeout 120 "$tagwire" bench "$@" 2>/dev/null | note "$what" "$name$build"
}

layers() { # library transport pml test arguments...
    local with=$1 transport=$2 pml=$3
    shift 3
    ours "$with" "$1" "$transport $pml" "$@" -t "$transport" -p "$pml" --layers
}

perftest_latency() { # UCX_TLS size iterations
    perftest "$1" tag_lat "$2" "$3" | awk -v size="$2" '{ print size, $4, 0, 0 }'
}

mpis=(mpich)
[ -n "$OPENMPI_PREFIX" ] && mpis+=(openmpi openmpi-ofi)
peer() { # name test arguments...
    local name=$1
    shift
    case $name in
    mpich)
        MPIR_CVAR_NOLOCAL=1 MPIR_CVAR_CH4_NETMOD=ofi FI_PROVIDER=tcp \
            timeout 120 "$tagwire" bench "$@" -t "$mpich" 2>/dev/null ;;
    openmpi)
        OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self OMPI_MCA_btl_tcp_if_include=lo \
            timeout 120 "$tagwire" bench "$@" -t "mpi:$OPENMPI_PREFIX" 2>/dev/null ;;
    openmpi-ofi)
        OMPI_MCA_pml=cm OMPI_MCA_mtl=ofi OMPI_MCA_mtl_ofi_provider_include=tcp \
            timeout 120 "$tagwire" bench "$@" -t "mpi:$OPENMPI_PREFIX" 2>/dev/null ;;
    esac | note "$1, TCP" "$name"
}

for _ in $(seq "${1:-3}"); do
    for pml in ob1 cm; do
        for transport in ofi:tcp 'ofi:tcp;ofi_rxm' ucx:tcp,self ucx:posix,self,cma; do
            layers newer "$transport" $pml latency -m 8
            layers newer "$transport" $pml bandwidth -m 64K,1M,4M
        done
    done
    # Under cm that of 2.x alone: 1.17 forgets wildcards.
    for pml in ob1 cm; do
        layers newer ofi:shm $pml latency -m 8
        layers newer ofi:shm $pml bandwidth -m 64K,1M,4M
    done
    for tls in tcp,self posix,self,cma; do perftest_latency $tls 8 100000 | note latency "ucx_perftest 1.22, $tls"; done
    if [ -n "${FABTESTS_PREFIX:-}" ]; then
        for provider in tcp 'tcp;ofi_rxm' shm; do
            for size in 8 65536; do
                fabtest fi_rdm_tagged_pingpong "$provider" $size 20000 |
                    awk -v size=$size '{ print size, $6, 0, 0 }' | note latency "fi_rdm_tagged_pingpong 1.22, $provider"
                ours fab latency "Tagwire raw, libfabric 1.22, $provider" \
                    latency --raw -m $size -i 20000 -t "ofi:$provider"
            done
        done
    fi
    for way in 'ob1 ofi:tcp' 'cm ofi:tcp' 'ob1 ucx:tcp,self' 'ob1 shm'; do
        for test in 'latency -m 8,64,64K,1M' 'bandwidth -m 1M' 'message-rate -m 8'; do
            # shellcheck disable=SC2086 # words
            ours newer "${test%% *}, TCP" "Tagwire $way" $test -p ${way% *} -t ${way#* }
        done
    done
    for name in "${mpis[@]}"; do
        peer "$name" latency -m 8,64,64K,1M
        peer "$name" bandwidth -m 1M
        peer "$name" message-rate -m 8
    done
done

python3 - "$rows" <<'PYTHON'
import collections, statistics, sys

cells = collections.defaultdict(lambda: ([], []))
for line in open(sys.argv[1]):
    what, way, size, value, raw = line.rstrip("\n").split("|")
    ours, theirs = cells[what, way, int(size)]
    ours.append(float(value))
    if raw not in ("", "0"):
        theirs.append(float(raw))

def shown(values):
    return f"{statistics.median(values):.4g} ({min(values):.3g}..{max(values):.3g})" if values else "-"

print("| what | bytes | by | median (least..most) | raw | ratio |")
print("|---|---|---|---|---|---|")
for (what, way, size), (ours, raw) in sorted(cells.items()):
    with_raw = raw and what in ("latency", "bandwidth")
    ratio = f"{statistics.median(ours) / statistics.median(raw):.2f}" if with_raw else ""
    print(f"| {what} | {size:,} | {way} | {shown(ours)} | {shown(raw) if with_raw else ''} | {ratio} |")
PYTHON
