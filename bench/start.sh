#!/usr/bin/env bash
# How long a job of two ranks takes from its command to its end, without and with the libraries: the ring of
# the examples, one lap. In milliseconds, by turns, ROUNDS times; medians, with the extremes in brackets.
# Needs a quiet machine, a build of profile dist with examples, and the libraries that bench/libraries.sh names:
#
#   ci/peers && cargo build --profile dist && cargo build --profile dist -p tagwire --examples && bench/start.sh [ROUNDS] > table.md
set -uo pipefail
cd "$(dirname "$0")/.."
. bench/libraries.sh
times=$(mktemp)
trap 'rm -f "$times"' EXIT

timed() { # what command...
    local what=$1$build began ended
    shift
    began=$(date +%s%N)
    "$@" >/dev/null 2>&1 || { echo "bench/start.sh: $what failed" >&2; return; }
    ended=$(date +%s%N)
    echo "$what|$(((ended - began) / 1000))" >>"$times"
}

round() {
    local ring transport libraries name
    ring=$(dirname "$tagwire")/examples/ring
    timed "/bin/true, twice (the launcher alone)" "$tagwire" run -n 2 -- /bin/true
    timed "shm" "$tagwire" run -n 2 -- "$ring" 1
    for transport in ofi:tcp 'ofi:tcp;ofi_rxm' ucx:tcp,self ucx:posix,self; do
        for libraries in env newer; do
            # The old libfabric has no plain tcp.
            [ "$libraries $transport" = 'env ofi:tcp' ] && continue
            name=$([ $libraries = newer ] && echo 'libraries of PyPI' || echo "the system's libraries")
            TAGWIRE_TRANSPORT=$transport timed "$transport, $name" $libraries "$tagwire" run -n 2 -- "$ring" 1
        done
    done
}

for _ in $(seq "${1:-11}"); do by_builds round; done

python3 - "$times" <<'PYTHON'
import collections, statistics, sys

rows = collections.defaultdict(list)
for line in open(sys.argv[1]):
    what, time = line.rstrip("\n").rsplit("|", 1)
    rows[what].append(int(time) / 1000)
print("| job of 2 ranks | ms |")
print("|---|---|")
for what, values in rows.items():
    print(f"| {what} | {statistics.median(values):.1f} ({min(values):.1f}..{max(values):.1f}) |")
PYTHON
