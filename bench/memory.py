#!/usr/bin/env python3
"""Measures jobs of many ranks on this machine: how long start, one round of a ring and end take, and of what the memory of a
rank is made while its ring runs. Medians of ROUNDS jobs; of all ranks of the last one.

    cargo build --release --workspace --examples && bench/memory.py [RANKS [ROUNDS]]
"""

import pathlib
import re
import statistics
import subprocess
import sys
import time

import launchers

SETTLES = 60
KINDS = ("private", "shared memory", "code")


def ranks_of(job):
    """Returns the processes of the ranks among the descendants of a job."""
    parents = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except OSError:
            continue
        name = text[text.index("(") + 1 : text.rindex(")")]
        parents[int(stat.parent.name)] = (int(text[text.rindex(")") + 2 :].split()[1]), name)

    def is_below(pid):
        while pid in parents and pid != job.pid:
            pid = parents[pid][0]
        return pid == job.pid

    return [pid for pid, (_, name) in parents.items() if name == launchers.RING.name and is_below(pid)]


def kind_of(name):
    if "memfd:" in name:
        return "shared memory"
    return "code" if name.startswith("/") else "private"


def memory_of(pid):
    """Returns what a process has in memory, in KiB by kind: of what several have mapped its part."""
    sums = dict.fromkeys(KINDS, 0)
    kind = None
    for line in pathlib.Path(f"/proc/{pid}/smaps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            kind = kind_of((line.split(maxsplit=5) + [""])[5] if len(line.split()) > 5 else "")
        elif line.startswith("Pss:"):
            sums[kind] += int(line.split()[1])
        elif line.startswith("Private_Dirty:") and kind == "code":
            # What the program has written of its own image.
            sums["private"] += int(line.split()[1])
            sums["code"] -= int(line.split()[1])
    return sums


def sampled(command, ranks):
    """Returns the memory of each rank of a job whose ring runs."""
    job = subprocess.Popen([*command, launchers.RING, "1000000000"], stdout=subprocess.DEVNULL, env=launchers.environment())
    try:
        until = time.monotonic() + SETTLES
        while len(ranks_of(job)) < ranks and time.monotonic() < until:
            time.sleep(0.2)
        time.sleep(3)
        return [memory_of(pid) for pid in ranks_of(job)]
    finally:
        job.terminate()
        job.wait()


def main():
    ranks = int(sys.argv[1]) if len(sys.argv) > 1 else 256
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    print(f"{'launcher':16} {'start to end, s':>16}  KiB a rank, median (most): {', '.join(KINDS)}")
    for name, command in launchers.of_this_host(ranks).items():
        times = [launchers.took([*command, launchers.RING, "1"]) / 1e3 for _ in range(rounds)]
        memory = sampled(command, ranks)
        parts = [f"{statistics.median(m[kind] for m in memory):.0f} ({max(m[kind] for m in memory)})" for kind in KINDS]
        print(f"{name:16} {statistics.median(times):16.2f}  {', '.join(parts)}  of {len(memory)} ranks")


main()
