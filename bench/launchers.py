"""The launchers that scripts of this folder measure, as far as they are here."""

import os
import pathlib
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
PEERS = TARGET / "peers"
RING = TARGET / "release/examples/ring"


def environment():
    return os.environ | {"PRTE_ALLOW_RUN_AS_ROOT": "1", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def of_this_host(ranks):
    """Returns the launchers that start so many ranks of this host: a name and the words in front of a program."""
    count = str(ranks)
    found = {"tagwire run": [TARGET / "release/tagwire", "run", "-n", count, "--"]}
    for name in ("hydra", "gforker"):
        found[name] = [PEERS / f"mpich/bin/mpiexec.{name}", "-n", count]
    found["prterun"] = [PEERS / "openmpi/bin/prterun", "-n", count, "--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"]
    if "SLURM_CONF" in os.environ:
        for mpi in ("pmi2", "pmix", "none"):
            found[f"srun --mpi={mpi}"] = ["srun", "--overcommit", f"--mpi={mpi}", "-n", count]
    return {name: command for name, command in found.items() if command[0] == "srun" or command[0].exists()}


def took(command):
    """Returns how many milliseconds a command takes."""
    start = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment())
    return (time.monotonic() - start) * 1e3
