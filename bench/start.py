#!/usr/bin/env python3
"""Measures how long launchers take to start two ranks that exchange one message over shared memory, less what they take
for /bin/true: medians of ROUNDS starts, by turns.

    cargo build --release --workspace --examples && bench/start.py [ROUNDS]

Launchers are those of `ci/peers` and, where this runs in an environment with `SLURM_CONF` set, srun.
"""

import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
PEERS = TARGET / "peers"
RING = TARGET / "release/examples/ring"
PRTE = {"PRTE_ALLOW_RUN_AS_ROOT": "1", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def launchers():
    """Returns the launchers that are here: a name and the words in front of a program."""
    found = {"tagwire run": [TARGET / "release/tagwire", "run", "-n", "2", "--"]}
    for name in ("hydra", "gforker"):
        found[name] = [PEERS / f"mpich/bin/mpiexec.{name}", "-n", "2"]
    found["prterun"] = [PEERS / "openmpi/bin/prterun", "-n", "2", "--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"]
    if "SLURM_CONF" in os.environ:
        for mpi in ("pmi2", "pmix", "none"):
            found[f"srun --mpi={mpi}"] = ["srun", "--overcommit", f"--mpi={mpi}", "-n", "2"]
    return {name: command for name, command in found.items() if command[0] == "srun" or command[0].exists()}


def took(command):
    start = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=os.environ | PRTE)
    return (time.monotonic() - start) * 1e3


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 11
    times = {}
    for _ in range(rounds):
        for name, command in launchers().items():
            for program in (["/bin/true"], [RING, "1"]):
                times.setdefault((name, len(program)), []).append(took([*command, *program]))
    print(f"{'launcher':16} {'/bin/true':>10} {'ranks':>10} {'more':>10}  ms, medians of {rounds} (extremes)")
    for name in launchers():
        true, ranks = times[name, 1], times[name, 2]
        more = statistics.median(ranks) - statistics.median(true)
        print(f"{name:16} {statistics.median(true):10.1f} {statistics.median(ranks):10.1f} {more:10.1f}"
              f"  ({min(ranks):.1f}..{max(ranks):.1f})")


main()
