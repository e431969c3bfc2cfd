"""Suites: what shim/gates/suites/NAME.toml says of a checkout, and its programs, compiled outside of it.

A description has `folders` (below MPI_SUITES: the first that is there), `git` with `revision`, or `archive` (where --fetch takes it from), `root` (the folder of
its sources), `shared` (sources that every program may use), `include`, `flags`, `libraries`, `headers` (what its configure
would write), `fortran` (below a folder's name: `shared`, sources that its programs use, and `flags`), `generated` (folders to which a
command adds sources, in a copy), `converted` (folders that are written by a command out of others), `others` (folders whose files others use), and the patterns `passed` and `failed` for what programs say (`passed_with`: by an argument). Which sources and flags a program has beyond PROGRAM.c is
read in the Makefile.am beside it.
"""

import concurrent.futures
import dataclasses
import pathlib
import re
import shutil
import threading
import tomllib

from suites.sources import Failed, fetch, run


@dataclasses.dataclass
class Suite:
    """A checkout, and where its programs are built."""

    name: str
    settings: dict
    checkout: pathlib.Path
    folder: pathlib.Path
    prefix: pathlib.Path

    @classmethod
    def load(cls, description, suites, target, prefix):
        settings = tomllib.loads(description.read_text())
        name = description.stem
        checkouts = [suites / folder for folder in settings["folders"]]
        checkout = next((checkout for checkout in checkouts if checkout.is_dir()), checkouts[0])
        return cls(name, settings, checkout, target / name, prefix)

    @property
    def root(self):
        return self.checkout / self.settings.get("root", ".")

    def is_there(self):
        return self.root.is_dir()

    def passed(self, status, output, arguments):
        """Whether a program's end and output are those of one that has passed."""
        by_argument = self.settings.get("passed_with", {})
        wanted = [self.settings["passed"], *(pattern for argument, pattern in by_argument.items() if argument in arguments)]
        failed = self.settings.get("failed")
        return status == 0 and all(re.search(pattern, output) for pattern in wanted) and not (failed and re.search(failed, output))

    def prepare(self):
        """Writes the headers and compiles what all programs share."""
        for name, text in self.settings.get("headers", {}).items():
            header = self.folder / "headers" / name
            if not header.exists() or header.read_text() != text:
                header.parent.mkdir(parents=True, exist_ok=True)
                header.write_text(text)
        for name, command in self.settings.get("generated", {}).items():
            made = self.folder / "converted" / name
            if not made.exists():
                part = made.with_name(f"{made.name}.part")
                shutil.rmtree(part, ignore_errors=True)
                shutil.copytree(self.root / name, part)
                run([word.replace("$ROOT", str(self.root)) for word in command], part)
                part.rename(made)
        for name, command in self.settings.get("converted", {}).items():
            made = self.folder / "converted" / name
            if not made.exists():
                made.mkdir(parents=True)
                # What its Makefile has beyond what is converted.
                for addition in (self.root / name).glob("*.ap"):
                    shutil.copy(addition, made)
                run([self.named(word) for word in command] + [made, "Makefile.am", "Makefile.ap"], self.root)
        archive = self.folder / "libshared.a"
        sources = [self.root / name for name in self.settings.get("shared", [])]
        if not sources:
            return
        objects = [self.compiled(source, [], "shared") for source in sources]
        if any(newer(part, archive) for part in objects):
            archive.unlink(missing_ok=True)
            run(["ar", "rcs", archive, *objects])

    def build(self, program):
        """Compiles a program and returns its path."""
        made = self.folder / "programs" / program
        sources, flags = self.parts(program)
        fortran = self.fortran(program)
        objects = [self.compiled(self.root / source, flags, f"shared-{program.split('/')[0]}", fortran) for source in fortran.get("shared", [])]
        modules = [f"-I{folder}" for folder in {part.parent for part in objects}]
        objects += [self.compiled(source, flags + modules, program, fortran) for source in sources]
        archive = self.folder / "libshared.a"
        shared = [archive] if archive.exists() else []
        if any(newer(part, made) for part in [*objects, *shared]):
            made.parent.mkdir(parents=True, exist_ok=True)
            linker = "mpifort" if any(source.suffix in FORTRAN for source in sources) else "mpicc"
            run([self.prefix / "bin" / linker, *self.settings["flags"], "-Wl,--gc-sections", "-o", made, *objects, *shared,
                 *self.settings.get("libraries", [])])
        return made

    def parts(self, program):
        """Returns the sources and flags of a program, by the Makefile.am beside it."""
        folder, name = pathlib.Path(program).parent, pathlib.Path(program).name
        makefile = self.place(folder / "Makefile.am")
        text = makefile.read_text().replace("\\\n", " ") if makefile.exists() else ""

        def words(variable):
            match = re.search(rf"(?m)^\s*{re.escape(name)}_{variable}\s*=(.*)$", text)
            return [word for word in (match[1].split() if match else []) if not word.startswith(("$", "@"))]

        default = next((name + end for end in FORTRAN if self.place(folder / (name + end)).exists()), f"{name}.c")
        sources = [word for word in words("SOURCES") if word.endswith((".c", ".cpp", *FORTRAN))] or [default]
        return [self.place(folder / source) for source in sources], words("CPPFLAGS")

    def named(self, word):
        """The file or folder of the suite that a word of a command is, as generated where it is; else the word."""
        place = self.place(word)
        return place if place.exists() else word

    def place(self, name):
        """Where a file of the suite is: written by its converter, in the checkout, or beside in a folder that it takes files of."""
        converted = self.folder / "converted"
        other = self.settings.get("others", {}).get(str(pathlib.Path(name).parent))
        places = [converted / name, self.root / name, *([converted / other / pathlib.Path(name).name] if other else [])]
        return next((place for place in places if place.exists()), self.root / name)

    def fortran(self, program):
        """What the description says of Fortran in the folder of a program."""
        return self.settings.get("fortran", {}).get(program.split("/")[0], {})

    def compiled(self, source, flags, whose, fortran=None):
        """Compiles a source and returns the object. Modules lie beside it."""
        root = self.root if source.is_relative_to(self.root) else self.folder / "converted"
        made = self.folder / "objects" / whose / source.relative_to(root).with_suffix(".o")
        # What names a header from two folders above finds it, too.
        include = [f"-I{self.folder / 'headers/include'}", f"-I{self.folder / 'headers/from/folder'}", *(f"-I{self.root / name}" for name in self.settings.get("include", []))]
        compiler = self.prefix / "bin" / {".c": "mpicc", ".cpp": "mpicxx"}.get(source.suffix, "mpifort")
        if source.suffix in FORTRAN:
            flags = [*flags, *(fortran or {}).get("flags", []), f"-J{made.parent}", f"-I{source.parent}"]
        command = [compiler, *self.settings["flags"], "-ffunction-sections", *include, *flags, "-c", source, "-o", made]
        # What it was made of, beside its source.
        recipe, before = repr((command, self.settings.get("headers"))), made.with_suffix(".recipe")
        if newer(source, made) or newer(self.prefix / "include/mpi.h", made) or not before.exists() or before.read_text() != recipe:
            made.parent.mkdir(parents=True, exist_ok=True)
            run(command)
            before.write_text(recipe)
        return made

    def fetch(self):
        """Brings the checkout from where its description says: whole, or not at all."""
        fetch(self.settings, self.checkout)


# How sources of Fortran end.
FORTRAN = (".f", ".f90", ".F90")


def newer(source, made):
    return not made.exists() or source.stat().st_mtime > made.stat().st_mtime


def build(suites, entries, jobs):
    """Builds what is listed, side by side, and returns the path or the failure of each (suite, program)."""
    made, unbuilt = {}, {}
    lock = threading.Lock()

    def one(key):
        try:
            result = unbuilt.get(key[0]) or suites[key[0]].build(key[1])
        except (Failed, OSError) as failure:
            result = failure
        with lock:
            made[key] = result

    for suite in suites.values():
        try:
            suite.prepare()
        except Failed as failure:
            unbuilt[suite.name] = failure
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        list(pool.map(one, dict.fromkeys((entry.suite, entry.program) for entry in entries)))
    return made
