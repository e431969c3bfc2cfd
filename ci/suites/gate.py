"""The lists of shim/gates: which programs run in a stage, and what is expected of each.

A line is `SUITE PROGRAM RANKS OUTCOME [NAME=VALUE]... [ARGUMENT]... [; REASON]`. The outcomes:

  pass           the status is 0, and the output says what the suite's description calls passed
  ends           the job ends by itself with another status than 0, as the program means to
  fail           it does not pass; a line without a reason is refused
  skip           it is not run; a line without a reason is refused
  needs:A,B      as `pass`, once the library has MPI_A and MPI_B; until then it is not run

`seconds=N` before the arguments is the program's time-out; another NAME=VALUE is set in its environment.
"""

import dataclasses
import pathlib
import re
import shlex

OUTCOMES = ("pass", "ends", "fail", "skip")


class Wrong(Exception):
    """A line of a list that says nothing that can be meant."""


@dataclasses.dataclass
class Entry:
    """A program to run."""

    suite: str
    program: str
    ranks: int
    outcome: str
    reason: str
    arguments: list
    variables: dict
    seconds: int
    place: str
    needs: tuple = ()

    @property
    def name(self):
        return " ".join([self.suite, self.program, str(self.ranks), *self.arguments])


def entry(line, place, seconds):
    """Returns what a line says."""
    before, _, reason = line.partition(";")
    words = shlex.split(before)
    if len(words) < 4 or not words[2].isdigit() or int(words[2]) < 1:
        raise Wrong(f"{place}: this is not SUITE PROGRAM RANKS OUTCOME [NAME=VALUE]... [ARGUMENT]... [; REASON]")
    suite, program, ranks, outcome, *rest = words
    outcome, _, needs = outcome.partition(":")
    if outcome not in OUTCOMES and not (outcome == "needs" and needs):
        raise Wrong(f"{place}: there is no outcome '{words[3]}'")
    if outcome in ("fail", "skip") and not reason.strip():
        raise Wrong(f"{place}: '{outcome}' takes a reason after ';'")
    variables = {}
    while rest and (match := re.fullmatch(r"(\w+)=(.*)", rest[0])):
        variables[match[1]] = match[2]
        rest.pop(0)
    return Entry(suite, program, int(ranks), outcome, reason.strip(), rest, variables,
                 int(variables.pop("seconds", seconds)), place, tuple(filter(None, needs.split(","))))


def entries(path, seconds):
    """Returns the entries of a list."""
    found = []
    for number, line in enumerate(pathlib.Path(path).read_text().splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            found.append(entry(line, f"{path.name}:{number}", seconds))
    return found


def functions(root):
    """Returns the names of the standard's functions, without MPI_, with whether the library has them."""
    found = {}
    for line in (root / "shim/api/functions.txt").read_text().splitlines():
        head, bar, tail = line.partition("|")
        if bar and not line.startswith("#"):
            found[head.split()[0]] = tail.split("|")[0].strip() != "-"
    return found
