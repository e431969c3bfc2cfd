#!/usr/bin/env bash
# The tables of docs/performance.md on partitioned operations: what parts cost against one message, what they
# gain when threads compute, and which numbers of partitions to use. Tagwire over shared memory, libfabric and
# UCX, and MPICH, all by turns, ROUNDS times; medians, with the extremes in brackets.
# Needs a quiet machine, a release build, and the libraries that bench/libraries.sh names:
#
#   ci/peers && cargo build --profile dist && bench/partitioned.sh [ROUNDS] > tables.md
set -uo pipefail
cd "$(dirname "$0")/.."
. bench/libraries.sh
rows=$(mktemp -d)
trap 'rm -rf "$rows"' EXIT
runs=0

run() { # table transport arguments...
    case $2 in
    "$mpich") run_one "$@" ;;
    *) by_builds run_one "$@" ;;
    esac
}
run_one() {
    local table=$1$build transport=$2
    shift 2
    runs=$((runs + 1))
    newer timeout 300 "$tagwire" bench partitioned -t "$transport" "$@" --format json \
        >"$rows/$table.$runs.json" 2>/dev/null || echo "bench/partitioned.sh: $table on $transport failed" >&2
}

late="--threads 16 --compute-time 10ms --noise-pct 4"
for _ in $(seq "${1:-3}"); do
    for transport in shm "$mpich" ofi:tcp ucx:tcp,self; do
        policies=default,each,messages,single
        [ "$transport" = "$mpich" ] && policies=default
        run cost "$transport" --partitions 32 -m 16K,1M --policy $policies
    done
    for transport in shm "$mpich"; do
        run one "$transport" --partitions 1 -m 64,1K,16K,256K,1M --policy default
        # shellcheck disable=SC2086 # words
        for noise in uniform single; do
            run late-$noise "$transport" --partitions 16 -m 1K,16K,256K,1M --policy default $late --noise $noise
        done
    done
    # shellcheck disable=SC2086 # words
    for noise in uniform single; do
        for transport in ofi:tcp ucx:tcp,self; do
            run late-$noise $transport --partitions 16 -m 16K,1M --policy default $late --noise $noise
        done
    done
    # Not over networks: there the thread that makes a part ready writes it to its connection before it is
    # done, so that nothing is left after the join.
    for noise in uniform single; do
        for time in 0 1ms 10ms; do
            run advice-$noise-$time shm --partitions 4,16,64 --threads 4 -m 4K,64K,1M,16M \
                --policy default,each,messages,single --compute-time $time --noise $noise --noise-pct 4 --advise
        done
    done
done

python3 - "$rows" <<'PYTHON'
import collections, glob, json, os, statistics, sys

def flat(row):
    return {"size": row["size"], **row["series"], **row["figures"]}

advice = collections.defaultdict(list)
tables = collections.defaultdict(lambda: collections.defaultdict(lambda: collections.defaultdict(list)))
for path in sorted(glob.glob(sys.argv[1] + "/*.json")):
    # The name of the build stands behind that of the table where there are several.
    table, _, build = os.path.basename(path).rsplit(".", 2)[0].partition(" ")
    try:
        document = json.load(open(path))
    except ValueError:
        continue
    for one in document.get("advice", []):
        # The advice of several builds is taken together: it is the machine's.
        advice[table, one["size"]].append(one)
    for row in map(flat, document["rows"]):
        case = (f"{row['transport'].split(':/')[0]} {build}".strip(), row["size"], row["partitions"], row["policy"])
        for figure in ("overhead", "part_us", "message_us", "early_bird", "application_availability",
                       "after_join_us", "perceived_bandwidth_mb_s"):
            tables[table][case][figure].append(row[figure])

def size(count):
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit:
            return f"{count // unit} {name}"
    return f"{count} B"

def cell(values, digits=2):
    if not values:
        return "-"
    middle = f"{statistics.median(values):.{digits}f}"
    return f"{middle} ({min(values):.{digits}f}..{max(values):.{digits}f})"

def head(*names):
    print("| " + " | ".join(names) + " |")
    print("|" + "---|" * len(names))

for table, what in (("cost", "32 partitions, all ready at once"), ("one", "One partition")):
    print(f"\n**{what}**\n")
    head("transport", "bytes", "policy", "overhead", "cycle, us", "one message, us")
    for case, found in sorted(tables[table].items(), key=lambda one: (one[0][1], one[0][0])):
        print("|", case[0], "|", size(case[1]), "|", case[3], "|", cell(found["overhead"]), "|",
              cell(found["part_us"], 1), "|", cell(found["message_us"], 1), "|")

for noise in ("uniform", "single"):
    print(f"\n**16 threads, a partition each, 10 ms of computation, noise {noise} 4 %**\n")
    head("transport", "bytes", "early-bird share", "application availability", "left after the join, us")
    for case, found in sorted(tables[f"late-{noise}"].items(), key=lambda one: (one[0][1], one[0][0])):
        print("|", case[0], "|", size(case[1]), "|", cell(found["early_bird"]), "|",
              cell(found["application_availability"]), "|", cell(found["after_join_us"], 1), "|")

for noise in ("uniform", "single"):
    print(f"\n**What to use, 4 threads over shm, noise {noise} 4 %: partitions, policy, us after the last thread (one message)**\n")
    times = ("0", "1ms", "10ms")
    head("bytes", *(f"compute {time}" for time in times))
    sizes = sorted({size for table, size in advice if table.startswith(f"advice-{noise}-")})
    for count in sizes:
        cells = []
        for time in times:
            # What --advise said in most launches, with the medians of those.
            said = advice[f"advice-{noise}-{time}", count]
            names = [(one["partitions"], one["policy"]) for one in said]
            if not names:
                cells.append("-")
                continue
            chosen = max(sorted(set(names)), key=names.count)
            said = [one for one, name in zip(said, names) if name == chosen]
            after, message = (statistics.median(one[key] for one in said) for key in ("after_join_us", "message_us"))
            cells.append(f"{chosen[0]}, {chosen[1]}: {after:.1f} ({message:.1f})")
        print("|", size(count), "|", " | ".join(cells), "|")
PYTHON
