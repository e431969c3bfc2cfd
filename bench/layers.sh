#!/usr/bin/env bash
# The tables of docs/performance.md that put ob1, cm and an MPI library side by side: figures 2, 3 and 4 of
# 'An Evaluation of Open MPI's Matching Transport Layer on the Cray XT' (latency and bandwidth,
# message rate, availability on either side), overlap, what is left where cross-memory attach is forbidden, and what
# a progress thread costs and gains. All by turns, ROUNDS times, on cores 0 and 1; medians.
# Needs a quiet machine, a release build, and an MPI library: MPICH of `ci/peers`, or TAGWIRE_MPI=PATH.
#
#   ci/peers mpich && cargo build --profile dist && bench/layers.sh [ROUNDS] > tables.md
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/libraries.sh
mpi=${TAGWIRE_MPI:+mpi:$TAGWIRE_MPI}
mpi=${mpi:-$mpich}
sizes=1,64,1K,8K,64K,256K,1M,4M
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# One run of each build: its group of tables, its column there, and what `tagwire bench` is told. One that fails has no
# column. An MPI library needs one build only.
runs=0
run() { # group column arguments...
    case $2 in
    mpi) run_one "$@" ;;
    *) by_builds run_one "$@" ;;
    esac
}
run_one() {
    local group=$1 column=$2$build
    shift 2
    runs=$((runs + 1))
    printf '%s\n%s\n' "$group" "$column" >"$folder/$runs.name"
    "$tagwire" bench "$@" --format json >"$folder/$runs.json" 2>/dev/null || rm "$folder/$runs.json"
}

for _ in $(seq "${1:-3}"); do
    for way in ob1 cm mpi; do
        case $way in
        mpi) with=(-t "$mpi") ;;
        *) with=(-p "$way") ;;
        esac
        run "" $way latency -m $sizes "${with[@]}"
        run "" $way bandwidth -m $sizes "${with[@]}"
        run "" $way message-rate -m 1,64,1K,8K,64K,1M "${with[@]}"
        run "" $way availability --side both -m $sizes "${with[@]}"
        run "" $way overlap -m 1K,64K,1M "${with[@]}"
    done
    for way in ob1 cm; do
        run ", behind 65,536 posted receives" $way latency -m 8 --posted 65536 -p $way
        for memory in heap arena; do
            for test in latency bandwidth "availability --side both"; do
                # shellcheck disable=SC2086 # words
                run ", cross-memory attach forbidden" "$way, $memory" $test -m 64K,1M,4M -p $way --shm-cma off --memory $memory
            done
        done
        run ", memory from the arena" $way latency -m 64K,1M,4M -p $way --memory arena
        run ", memory from the arena" $way bandwidth -m 64K,1M,4M -p $way --memory arena
        export TAGWIRE_PROGRESS_THREAD=on
        run ", with a progress thread" $way latency -m 8,64K -p $way
        run ", with a progress thread" $way message-rate -m 8 -p $way
        run ", with a progress thread" $way availability --side recv -m 1K,64K,1M -p $way
        unset TAGWIRE_PROGRESS_THREAD
    done
done

python3 - "$folder" <<'PYTHON'
import collections, json, pathlib, statistics, sys

# By test: what its tables are called, and the key of their figures.
METRICS = {
    "latency": [("Latency, us", "latency_us")],
    "bandwidth": [("Bandwidth, window 64, MB/s", "bandwidth_mb_s")],
    "message-rate": [("Message rate, window 64, M/s", "rate_msg_s")],
    "availability": [
        ("Availability, {side}, %", "availability_pct"),
        ("Overhead, {side}, us", "overhead_us"),
        ("Availability, {side}, against one core that copies, %", "availability_one_core_pct"),
    ],
    "overlap": [("Overlap, {side}, receive posted {receive}, %", "overlap_pct")],
}
SCALE = {"rate_msg_s": 1e-6}
def flat(row):
    return {"size": row["size"], **row["series"], **row["figures"]}

values = collections.defaultdict(lambda: collections.defaultdict(lambda: collections.defaultdict(list)))
folder = pathlib.Path(sys.argv[1])
for name in sorted(folder.glob("*.name"), key=lambda path: int(path.stem)):
    group, column = name.read_text().split("\n")[:2]
    result = name.with_suffix(".json")
    if not result.exists():
        continue
    document = json.loads(result.read_text())
    for row in map(flat, document["rows"]):
        for title, key in METRICS[document["test"]]:
            if row.get(key) is not None:
                table = title.format(**row) + group
                values[table][row["size"]][column].append(row[key] * SCALE.get(key, 1))

def show(samples):
    if not samples:
        return "-"
    middle = statistics.median(samples)
    form = (lambda x: f"{x:.3g}") if abs(middle) < 1000 else (lambda x: f"{x:,.0f}")
    return f"{form(middle)} ({form(min(samples))}..{form(max(samples))})"

for table, sizes in values.items():
    columns = list(dict.fromkeys(column for row in sizes.values() for column in row))
    print(f"\n**{table}**\n\n| bytes | {' | '.join(columns)} |\n|---{'|---' * len(columns)}|")
    for size, cells in sorted(sizes.items()):
        print(f"| {size:,} | {' | '.join(show(cells[column]) for column in columns)} |")
PYTHON
