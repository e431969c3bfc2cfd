"""Times of whole programs beside other libraries: the file that keeps them, and the table that is made of it.

    {"machine": "...", "libraries": {"tagwire": "Tagwire", "mpich": "MPICH 5.0.2"}, "rows": [
        {"application": "AMG", "over": "shm", "ranks": 4, "seconds": {"tagwire": [1.6, 1.5, 1.5], "mpich": [3.2, 2.8, 3.0]}, ...}]}

Ours comes first; `seconds` has a number of each turn.
"""

import dataclasses
import json
import statistics


class Wrong(Exception):
    """A file that cannot be understood, or whose times are not to be put beside others."""


@dataclasses.dataclass
class Times:
    """Where times were taken, of which libraries (names by key, ours first), and the rows, by values."""

    machine: str
    libraries: dict
    rows: list

    @classmethod
    def load(cls, file):
        try:
            known = json.loads(file.read_text())
            return cls(known["machine"], known["libraries"], known["rows"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise Wrong(f"{file} has no times: {error}") from error

    def written(self):
        return json.dumps({"machine": self.machine, "libraries": self.libraries, "rows": self.rows}, indent=1) + "\n"

    def over(self, before):
        """Returns these in the place of the same rows of an earlier file, whose other rows stay. Times of two machines, or of other libraries, are not mixed."""
        for what in ("machine", "libraries"):
            if getattr(self, what) != getattr(before, what):
                raise Wrong(f"the {what} of the file that is there: {getattr(before, what)}; now: {getattr(self, what)}")
        new = {key(row): row for row in self.rows}
        rows = [new.pop(key(row), row) for row in before.rows]
        return Times(self.machine, self.libraries, sorted([*rows, *new.values()], key=lambda row: (row["application"].lower(), row["over"], row["ranks"])))

    def compared(self):
        """Returns the rows that have times of ours and of another library."""
        own, *others = self.libraries
        return [row for row in self.rows if row["seconds"].get(own) and any(row["seconds"].get(other) for other in others)]

    def table(self):
        """Returns the lines of the table of what is compared."""
        lines = table([["program", "ranks", *self.libraries.values(), "of the best"]])
        for row in self.compared():
            spreads = [spread(row["seconds"].get(library, [])) for library in self.libraries]
            lines += [table_row([row["application"], str(row["ranks"] or "its own"), *spreads, ratio(row["seconds"], list(self.libraries))])]
        return [*lines, "", self.machine]


def key(row):
    return row["application"], row["over"], row["ranks"]


def best(seconds, others):
    """Returns the times of the other library whose median is least; nothing where no other has any."""
    return min((seconds[name] for name in others if seconds.get(name)), key=statistics.median, default=[])


def ratio(seconds, libraries):
    """Returns our time over the best other's, by medians; in bold where all of our turns took longer than all of its."""
    own, other = seconds.get(libraries[0]), best(seconds, libraries[1:])
    if not own or not other:
        return ""
    text = f"{statistics.median(own) / statistics.median(other):.2f}"
    return f"**{text}**" if min(own) > max(other) else text


def spread(seconds):
    """Returns the median of several runs, with the shortest and the longest."""
    if not seconds:
        return ""
    return f"{statistics.median(seconds):.2f}" + (f" ({min(seconds):.2f} to {max(seconds):.2f})" if len(seconds) > 1 else "")


def table(heads):
    """Returns the first lines of a table."""
    return [line for head in heads for line in (table_row(head), table_row(["---"] * len(head)))]


def table_row(cells):
    return "| " + " | ".join(cells) + " |"
