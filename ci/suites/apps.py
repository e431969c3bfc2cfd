"""Applications: what a file of shim/gates/apps says of one, how it is built, and how it is run over each way and beside other libraries.

A description is a table of TOML:

    what = "..."                     a sentence
    title = "..."                    how tables call it; else its file's name
    languages = ["C", "Fortran"]     whose compilers it needs: C, C++, Fortran, Rust
    source = { ... }                 as ci/suites/sources.py explains
    build = ["line", ...]            lines of bash, in a copy of the sources
    [needs]                          "FILE or COMMAND" = "PACKAGE of Debian", beyond compilers; a file may have a star
    [files]                          "FILE" = "text", written into the copy before it is built
    [[run]]                          a run, in the copy:
    name = "..."                     of several
    ranks = [2, 4]                   on so many ranks each; none where the line has its own
    line = "$MPIEXEC -n $N ./a"      a line of bash
    right = ["pattern", ...]         all of which its output has when it is right (^ and $ are those of a line); `wrong`: which it has not
    seconds = 300                    its time-out; else that of the command line
    timed = true                     its time is compared with other libraries', by --beside
    [listed]                         "WAY" or "WAY/RANKS" = "reason", of what is not right

Lines of both kinds have `mpicc` and its like first in PATH, and in variables MPI (the tree), CC, CXX, FC, JOBS (how many processors there are), MPIEXEC, and N.
"""

import collections
import dataclasses
import glob
import hashlib
import json
import os
import pathlib
import platform
import re
import shlex
import shutil
import statistics
import sys
import time
import tomllib

from suites import job, launch, sources, times

# What ranks talk over: settings of theirs.
WAYS = {"shm": {"TAGWIRE_TRANSPORT": "shm"}, "tcp": {"TAGWIRE_TRANSPORT": "ofi:tcp;ofi_rxm"}, "cm": {"TAGWIRE_PML": "cm"}}
# On so many processors, also where there are more: with more ranks than processors waits are others.
PROCESSORS = 2
COMPILERS = {"C": ("MPI_CC", "cc"), "C++": ("MPI_CXX", "c++"), "Fortran": ("MPI_FC", "gfortran"), "Rust": ("CARGO", "cargo")}
KEYS = {"what", "title", "languages", "source", "build", "needs", "files", "run", "listed"}
RUN_KEYS = {"name", "ranks", "line", "right", "wrong", "seconds", "timed"}
# How long a build may take.
BUILD_SECONDS = 7200


def ways(transport=None, pml=None):
    """Returns the ways by name: all, or the one of these settings."""
    chosen = {name: value for name, value in {"TAGWIRE_TRANSPORT": transport, "TAGWIRE_PML": pml}.items() if value}
    return {" ".join(chosen.values()): chosen} if chosen else WAYS


class Wrong(Exception):
    """A description that cannot be understood."""


@dataclasses.dataclass
class App:
    """An application: its description, its sources, and the text that a build depends on."""

    name: str
    settings: dict
    checkout: pathlib.Path

    @classmethod
    def load(cls, description, checkouts):
        try:
            settings = tomllib.loads(description.read_text())
        except tomllib.TOMLDecodeError as error:
            raise Wrong(f"{description}: {error}") from error
        app = cls(description.stem, settings, checkouts / description.stem)
        if wrong := app.wrong():
            raise Wrong(f"{description}: {wrong}")
        return app

    def wrong(self):
        """Returns what is wrong with the description; nothing where it is right."""
        if missing := sorted({"what", "languages", "source", "build", "run"} - self.settings.keys()):
            return f"there is no {missing[0]}"
        if unknown := sorted(self.settings.keys() - KEYS):
            return f"nothing is called {unknown[0]}; there are {', '.join(sorted(KEYS))}"
        if unknown := [language for language in self.settings["languages"] if language not in COMPILERS]:
            return f"there is no language {unknown[0]}; there are {', '.join(COMPILERS)}"
        if wrong := sources.wrong(self.settings["source"]):
            return wrong
        for run in self.settings["run"]:
            if missing := sorted({"line", "right"} - run.keys()):
                return f"a run has no {missing[0]}"
            if unknown := sorted(run.keys() - RUN_KEYS):
                return f"a run has nothing called {unknown[0]}"
            for pattern in [*run["right"], run.get("wrong", "")]:
                try:
                    re.compile(pattern)
                except re.error as error:
                    return f"the pattern {pattern!r}: {error}"
        ranks = {str(number) for run in self.settings["run"] for number in run.get("ranks", [])}
        for place in self.settings.get("listed", {}):
            way, _, number = place.partition("/")
            if way not in WAYS or (number and number not in ranks):
                return f"'{place}' is listed; ways are {', '.join(WAYS)}, ranks {', '.join(sorted(ranks))}"
        return None

    def is_there(self):
        return self.checkout.is_dir()

    def fetch(self):
        try:
            sources.fetch(self.settings["source"], self.checkout)
        except sources.Failed as failure:
            # A package of Python is asked what it is built with, by which it looks for its libraries.
            lacks = self.lacks()
            raise sources.Failed(f"{lacks}: {failure}" if lacks else str(failure)) from failure

    def absent(self):
        """Returns what it needs and is not here, or that it is not; nothing where all is."""
        return self.lacks() or (None if self.is_there() else f"there is no {self.checkout} (--fetch)")

    def lacks(self):
        """Returns what it is built and run with and is not here; nothing where all is."""
        for language in self.settings["languages"]:
            variable, command = COMPILERS[language]
            if not shutil.which(os.environ.get(variable, command)):
                return f"needs a compiler of {language}"
        for wanted, package in self.settings.get("needs", {}).items():
            if not (glob.glob(wanted) if wanted.startswith("/") else shutil.which(wanted)):
                return f"needs {wanted} (Debian: {package})"
        return None

    def revision(self):
        """Returns what the source is pinned to."""
        source = self.settings["source"]
        return source.get("revision") or source.get("version") or source["sha256"]

    def listed(self, way, ranks):
        """Returns why a run is not expected to be right; nothing where it is."""
        reasons = self.settings.get("listed", {})
        return reasons.get(f"{way}/{ranks}") or reasons.get(way)


@dataclasses.dataclass
class Library:
    """An MPI library: the folder of its tree, what starts ranks, and by whose wrappers its programs are built."""

    name: str
    tree: pathlib.Path
    launcher: launch.Launcher
    builds: str
    title: str
    variables: dict = dataclasses.field(default_factory=dict)

    def environment(self, ranks=0, settings=None):
        return {
            **os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MPI": str(self.tree), "CC": "mpicc", "CXX": "mpicxx", "FC": "mpifort",
            "JOBS": str(os.cpu_count()), "MPIEXEC": shlex.join(self.launcher.command), "N": str(ranks), "PATH": f"{self.tree / 'bin'}:{os.environ['PATH']}",
            **self.launcher.variables, **self.variables, **(settings or {}),
        }

    def mark(self, languages):
        """Returns a mark of what programs are compiled with."""
        names = ("mpi.h", "mpif.h") if "Fortran" in languages else ("mpi.h",)
        headers = [file for name in names for file in self.tree.glob(f"include/{name}")]
        return digest(*(file.read_bytes() for file in headers), str(self.tree).encode())


def ours(prefix):
    return Library("tagwire", prefix, launch.Launcher([prefix / "bin/mpiexec"]), "tagwire", "Tagwire")


def beside(names, prefix, peers):
    """Returns the other libraries: MPICH's has our program's interface, Open MPI's has its own wrappers."""
    made = []
    for name in names:
        if name == "mpich":
            started = launch.LAUNCHERS["hydra"](peers, prefix)
            version = defined(peers / "mpich/include/mpi.h", "MPICH_VERSION")
            made.append(Library(name, prefix, started, "tagwire", f"MPICH {version}", {"LD_LIBRARY_PATH": str(peers / "mpich/lib")}))
        elif name == "openmpi":
            started = launch.LAUNCHERS["prterun"](peers, prefix)
            version = ".".join(defined(peers / "openmpi/include/mpi.h", f"OMPI_{part}_VERSION") for part in ("MAJOR", "MINOR", "RELEASE"))
            made.append(Library(name, peers / "openmpi", started, name, f"Open MPI {version}"))
        else:
            raise Wrong(f"there is no library '{name}' to run beside; there are mpich, openmpi")
    return made


def defined(header, name):
    """Returns what a header defines a name as."""
    return re.search(rf'(?m)^#define {name} "?([^"\n]+)"?$', header.read_text())[1]


def build(app, library, work):
    """Builds an application, unless that was done by the same lines and headers; returns the folder, and how long it took, nothing where it was done."""
    folder = work / library.builds / app.name
    mark = folder.with_name(f"{app.name}.mark")
    wanted = digest(repr([app.settings.get(key) for key in ("source", "build", "files")]).encode(), library.mark(app.settings["languages"]).encode())
    if mark.exists() and mark.read_text() == wanted:
        return folder, None
    shutil.rmtree(folder, ignore_errors=True)
    mark.unlink(missing_ok=True)
    shutil.copytree(app.checkout, folder, symlinks=True)
    for name, text in app.settings.get("files", {}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    log = folder.with_name(f"{app.name}.log")
    status, took, said = job.run(bash("\n".join(app.settings["build"])), library.environment(), folder, log, BUILD_SECONDS)
    if status != 0:
        raise sources.Failed(f"status {status}: {last(said)}\n{log}")
    mark.write_text(wanted)
    return folder, took


@dataclasses.dataclass
class Case:
    """A run of an application over a way, on so many ranks (0: the line has its own)."""

    app: App
    run: dict
    way: str
    settings: dict
    ranks: int

    @property
    def name(self):
        return f"{self.app.name} {self.run['name']}" if "name" in self.run else self.app.name

    @property
    def title(self):
        title = self.app.settings.get("title", self.app.name)
        return f"{title}, {self.run['name']}" if "name" in self.run else title

    @property
    def key(self):
        return f"{self.name}, {self.way}, {self.ranks or 'its own'} ranks"

    def go(self, library, folder, log, seconds):
        """Returns what has come of it, and how long it took: right, wrong or late, with what it said last."""
        line = bash(self.run["line"])
        if os.cpu_count() > PROCESSORS and shutil.which("taskset"):
            line = ["taskset", "--cpu-list", ",".join(map(str, sorted(os.sched_getaffinity(0))[:PROCESSORS])), *line]
        status, took, said = job.run(line, library.environment(self.ranks, self.settings), folder, log, self.run.get("seconds", seconds))
        if status is None:
            return "late", took, f"after {took:.0f} s: {last(said)}"
        missing = [pattern for pattern in self.run["right"] if not re.search(pattern, said, re.MULTILINE)]
        bad = "wrong" in self.run and re.search(self.run["wrong"], said, re.MULTILINE)
        if status == 0 and not missing and not bad:
            return "right", took, ""
        why = f"status {status}" if status else f"says {bad[0]!r}" if bad else f"does not say {missing[0]!r}"
        return "wrong", took, f"{why}: {last(said)}"


def cases(app, ways):
    return [Case(app, run, way, settings, ranks) for run in app.settings["run"] for way, settings in ways.items() for ranks in run.get("ranks", [0])]


@dataclasses.dataclass
class Row:
    """A line of the table; `seconds` by library, one number of each turn."""

    case: Case
    outcome: str
    said: str = ""
    seconds: dict = dataclasses.field(default_factory=dict)

    @property
    def good(self):
        if self.outcome in ("skip", "unbuilt"):
            return self.outcome == "skip"
        return (self.outcome == "right") != bool(self.case.app.listed(self.case.way, self.case.ranks))

    def values(self):
        case = self.case
        return {"application": case.title, "over": case.way, "ranks": case.ranks, "outcome": self.outcome, "good": self.good, "said": self.said,
                "seconds": {name: [round(second, 3) for second in seconds] for name, seconds in self.seconds.items()}, "revision": case.app.revision(), "listed": case.app.listed(case.way, case.ranks)}

    def line(self, libraries):
        listed = self.case.app.listed(self.case.way, self.case.ranks)
        outcome = f"skip: {self.said}" if self.outcome == "skip" else self.outcome if self.good and not listed else f"{self.outcome}, as listed" if self.good else f"**{self.outcome}**"
        spreads = [times.spread(self.seconds.get(name, [])) for name in libraries]
        ratio = [times.ratio(self.seconds, libraries)] if len(libraries) > 1 else []
        return times.table_row([self.case.name, self.case.way, str(self.case.ranks or "its own"), outcome, *spreads, *ratio])


def head(libraries):
    names = ["application", "over", "ranks", "outcome", *(f"{name}, s" for name in libraries), *(["of the best"] if len(libraries) > 1 else [])]
    return "\n".join(times.table([names]))


def machine():
    """Returns what the runs were made on, as a line."""
    model = re.search(r"(?m)^model name\s*:\s*(.*)$", pathlib.Path("/proc/cpuinfo").read_text())
    return f"{model[1] if model else platform.machine()}, {min(PROCESSORS, os.cpu_count())} of {os.cpu_count()} processors, {platform.system()} {platform.release()}"


class Gate:
    """The stage: builds, runs, prints rows as they come, and keeps what has come of each."""

    def __init__(self, work, own, others, chosen):
        self.work, self.own, self.others, self.chosen = work, own, others, chosen
        self.library = library_mark(own.tree)
        self.names = [own.name, *(library.name for library in others)]
        self.kept = work / "results.json"
        self.known = json.loads(self.kept.read_text()) if self.kept.exists() else {}
        self.rows, self.lines = [], [head(self.names)]
        self.began = time.monotonic()
        (work / "logs").mkdir(parents=True, exist_ok=True)

    def all(self, apps, ways):
        print(self.lines[0], flush=True)
        for app in apps:
            wanted = [case for case in cases(app, ways) if case.run.get("timed") or not self.chosen.timed]
            reason = app.absent()
            folders = {} if reason or not wanted else self.built(app)
            for case in wanted:
                if reason:
                    self.add(Row(case, "skip", reason))
                elif isinstance(folders[self.own.name], sources.Failed):
                    self.add(Row(case, "unbuilt", str(folders[self.own.name])))
                else:
                    self.add(self.one(case, folders))
        return self.rows

    def built(self, app):
        """Builds an application for each library it is run with; returns folders, or failures, by library."""
        folders = {}
        for library in [self.own, *self.others]:
            if library.builds != self.own.builds and not {"C", "C++"}.issuperset(app.settings["languages"]):
                continue
            if library is not self.own and not any(run.get("timed") for run in app.settings["run"]):
                continue
            try:
                folders[library.name], took = build(app, library, self.work)
                if took is not None:
                    self.keep(f"{app.name}, built with {library.builds}", {"built": took})
            except sources.Failed as failure:
                folders[library.name] = failure
                print(f"{app.name}, {library.name}: NOT BUILT: {failure}", file=sys.stderr, flush=True)
        return folders

    def one(self, case, folders):
        """Runs a case: once, or by turns with others where it is timed over the first way."""
        mark = digest(repr((case.run, case.settings)).encode(), (self.work / "tagwire" / f"{case.app.name}.mark").read_bytes(), self.library, repr(self.names).encode())
        before = self.known.get(case.key, {})
        if self.chosen.resume and before.get("mark") == mark and before["outcome"] == "right":
            return Row(case, "right", seconds=before["seconds"])
        others = [library for library in self.others if isinstance(folders.get(library.name), pathlib.Path)] if case.run.get("timed") and case.way == "shm" else []
        outcome, said, seconds = "right", "", {}
        for _ in range(self.chosen.turns if others else 1):
            for library in [self.own, *others]:
                log = self.work / "logs" / re.sub(r"[^\w.-]+", "-", f"{case.key}-{library.name}.txt")
                ended, took, last_said = case.go(library, folders[library.name], log, self.chosen.seconds)
                if ended == "right":
                    seconds.setdefault(library.name, []).append(took)
                elif library is self.own:
                    outcome, said = ended, f"{last_said}\n{log}"
                else:
                    print(f"{case.key}: {library.name}: {ended}: {last_said}", file=sys.stderr, flush=True)
        row = Row(case, outcome, said, seconds)
        self.keep(case.key, {"mark": mark, "outcome": outcome, "seconds": row.seconds})
        return row

    def keep(self, key, what):
        self.known[key] = what
        # Written anew at once: what is broken off goes on by --resume.
        partial = self.kept.with_suffix(".partial")
        partial.write_text(json.dumps(self.known, indent=1) + "\n")
        partial.replace(self.kept)

    def add(self, row):
        self.rows.append(row)
        self.lines.append(row.line(self.names))
        print(self.lines[-1], flush=True)
        if row.outcome == "right" and not row.good:
            print(f"{row.case.key}: right, but listed: {row.case.app.listed(row.case.way, row.case.ranks)}", file=sys.stderr, flush=True)
        elif not row.good and row.outcome != "unbuilt":
            print(f"{row.case.key}: {row.outcome}: {row.said}", file=sys.stderr, flush=True)

    def total(self):
        count = collections.Counter(row.outcome for row in self.rows)
        hours = (time.monotonic() - self.began) / 3600
        return f"{', '.join(f'{number} {outcome}' for outcome, number in sorted(count.items()))}; {hours:.2f} hours\n{self.whole()}"

    def whole(self):
        """Returns what the stage takes as a whole, by what is kept of the last build and the last run of each: without other libraries."""
        built = [what["built"] for key, what in self.known.items() if "built" in what and key.endswith(f"built with {self.own.builds}")]
        runs = [what["seconds"][self.own.name] for what in self.known.values() if what.get("seconds", {}).get(self.own.name)]
        hours = [sum(built) / 3600, sum(map(statistics.median, runs)) / 3600]
        return f"whole stage, by what is kept: {len(built)} built in {hours[0]:.2f} hours, {len(runs)} runs in {hours[1]:.2f}"


def bash(text):
    return ["bash", "-euo", "pipefail", "-c", text]


def last(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "nothing"


def digest(*parts):
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def library_mark(tree):
    return digest(*(file.read_bytes() for file in sorted(tree.glob("lib/libmpi*.so.1")))).encode()
