#!/usr/bin/env bash
# The table of docs/performance.md on one-sided operations: `tagwire bench put|get` beside ucx_perftest and fi_rma_bw, by turns,
# ROUNDS times, on cores 0 and 1; medians, with the extremes in brackets. Needs what bench/networks.sh needs:
#
#   ci/peers && cargo build --profile dist && bench/one_sided.sh [ROUNDS] > table.md
#
# A get ends when its bytes are here, in all of them. A put of ours ends when the target has said that its bytes are visible; a
# write of fi_rma_bw when the provider has taken it; ucp_put_lat is half of a ping-pong of puts that are polled for. The ranks that
# are reached poll, as the servers of the tools do.
set -uo pipefail
cd "$(dirname "$0")/.."
. bench/libraries.sh
rows=$(mktemp)
trap 'rm -f "$rows"' EXIT
note() { awk -v what="$1" -v way="$2" 'NF { print what "|" way "|" $1 }' >>"$rows"; }

ours() { # library operation size transport arguments...
    local with=$1 operation=$2 size=$3 transport=$4
    shift 4
    $with timeout 120 "$tagwire" bench "$operation" -m "$size" -t "$transport" --wait spin "$@" 2>/dev/null |
        awk -v size="$size" '$1 == size { print $2 }'
}

for _ in $(seq "${1:-3}"); do
    for size in 8 1048576; do
        iterations=20000
        [ $size = 8 ] || iterations=500
        for operation in get put; do
            test=ucp_get verb=read
            [ $operation = get ] || test=ucp_put_lat verb=write
            for memory in heap arena; do
                ours env $operation $size shm --memory $memory | note "$operation $size shm, $memory" ours
                perftest posix,self,cma $test $size $iterations | awk '{ print $4 }' |
                    note "$operation $size shm, $memory" "$test, posix, cma"
            done
            ours newer $operation $size ucx:tcp,self | note "$operation $size ucx:tcp,self" ours
            perftest tcp,self $test $size $iterations | awk '{ print $4 }' | note "$operation $size ucx:tcp,self" "$test"
            [ -n "${FABTESTS_PREFIX:-}" ] || continue
            for provider in tcp 'tcp;ofi_rxm'; do
                ours fab $operation $size "ofi:$provider" | note "$operation $size ofi:$provider" ours
                fabtest fi_rma_bw "$provider" $size $iterations -o $verb -W 1 | awk '{ print $6 }' |
                    note "$operation $size ofi:$provider" "fi_rma_bw -o $verb -W 1"
            done
        done
    done
done

python3 - "$rows" <<'PYTHON'
import collections, statistics, sys

cells = collections.defaultdict(dict)
for line in open(sys.argv[1]):
    what, way, value = line.rstrip("\n").split("|")
    cells[what].setdefault(way, []).append(float(value))

def shown(values):
    return f"{statistics.median(values):.3g} ({min(values):.3g}..{max(values):.3g})"

print("| operation | bytes | transport | Tagwire, us | the library's tool, us | ratio |")
print("|---|---|---|---|---|---|")
for what, ways in sorted(cells.items()):
    operation, size, transport = what.split(" ", 2)
    ours = ways.pop("ours", None)
    tool, theirs = next(iter(ways.items()), (None, None))
    ratio = f"{statistics.median(ours) / statistics.median(theirs):.2f}" if ours and theirs else ""
    theirs = f"{shown(theirs)} `{tool}`" if theirs else ""
    print(f"| {operation} | {int(size):,} | {transport} | {shown(ours) if ours else '-'} | {theirs} | {ratio} |")
PYTHON
