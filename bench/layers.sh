#!/usr/bin/env bash
# The tables of docs/performance.md that put ob1, cm and an MPI library side by side: figures 2, 3 and 4 of
# 'An Evaluation of Open MPI's Matching Transport Layer on the Cray XT' (latency and bandwidth,
# message rate, availability on either side). All by turns, ROUNDS times, on cores 0 and 1; medians.
# Needs a quiet machine, a release build, and pip install mpich (or another library: TAGWIRE_MPI=PATH).
#
#   cargo build --release && bench/layers.sh [ROUNDS] > tables.md
set -euo pipefail
cd "$(dirname "$0")/.."
tagwire=${CARGO_TARGET_DIR:-target}/release/tagwire
mpi=mpi${TAGWIRE_MPI:+:$TAGWIRE_MPI}
sizes=1,64,1K,8K,64K,256K,1M,4M
rows=$(mktemp)
trap 'rm -f "$rows"' EXIT

run() { # what way arguments...
    local what=$1 way=$2
    shift 2
    "$tagwire" bench "$@" 2>/dev/null | awk -v what="$what" -v way="$way" '/^[0-9]/ { print what, way, $1, $2 }' >>"$rows"
}

for _ in $(seq "${1:-3}"); do
    for way in ob1 cm mpi; do
        case $way in
        mpi) with=(-t "$mpi") ;;
        *) with=(-p "$way") ;;
        esac
        run "Latency, us" $way latency -m $sizes "${with[@]}"
        run "Bandwidth, window 64, MB/s" $way bandwidth -m $sizes "${with[@]}"
        run "Message rate, window 64, messages/s" $way message-rate -m 1,64,1K "${with[@]}"
        run "Send availability, %" $way availability --side send -m $sizes "${with[@]}"
        run "Receive availability, %" $way availability --side recv -m $sizes "${with[@]}"
    done
    for way in ob1 cm; do
        run "Latency, us, behind 65,536 posted receives" $way latency -m 8 --posted 65536 -p $way
    done
    TAGWIRE_PROGRESS_THREAD=on run "Receive availability, %, with a progress thread" ob1 availability --side recv -m $sizes -p ob1
done

python3 - "$rows" <<'PYTHON'
import collections, statistics, sys
values = collections.defaultdict(list)
tables, sizes = [], {}
for line in open(sys.argv[1]):
    *what, way, size, value = line.split()
    what = " ".join(what)
    if what not in tables:
        tables.append(what)
    sizes.setdefault(what, []).append(int(size))
    values[what, way, int(size)].append(float(value))

def show(samples):
    if not samples:
        return "-"
    middle = statistics.median(samples)
    form = (lambda x: f"{x:.3g}") if middle < 1000 else (lambda x: f"{x:,.0f}")
    return f"{form(middle)} ({form(min(samples))}..{form(max(samples))})"

for what in tables:
    print(f"\n{what}\n\n| bytes | ob1 | cm | MPI |\n|---|---|---|---|")
    for size in sorted(set(sizes[what])):
        cells = [show(values[what, way, size]) for way in ("ob1", "cm", "mpi")]
        print(f"| {size:,} | " + " | ".join(cells) + " |")
PYTHON
