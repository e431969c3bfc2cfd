#!/usr/bin/env python3
"""Compares the Fortran columns, and what is written from them, with the machine-readable standard.

    ci/peers pympistandard==0.2.0        installs the package, whose python is target/peers/pympistandard/bin/python
    shim/api/fortran.py                  the table and the module mpi_f08 against the package: what differs, and exit status 1
    shim/api/fortran.py --module FILE    the same, with the text of the module
    shim/api/fortran.py --write          writes shim/api/fortran.txt from the package

The package has the facts of MPI-5.0. Nothing of its texts is in the table. The package is found as any module is.
"""

import json
import pathlib
import re
import subprocess
import sys

import pympistandard

FOLDER = pathlib.Path(__file__).resolve().parent
TABLE = FOLDER / "fortran.txt"
HEAD = """\
# What Fortran needs beside functions.txt: a line for each function that Fortran has, in that table's order.
#
#   Name   words   [| flags]
#
# A word is a parameter's name in the standard, in the order of functions.txt, followed by what the kind there does not say:
#
#   :logical       LOGICAL, where C has int or void *
#   :address :integer                   an integer, where C has void *
#   :buffer        a choice buffer, where C has void *
#   :pointer       TYPE(C_PTR); in mpif.h and the module mpi an integer of an address
#   :detached      TYPE(C_PTR); in mpif.h and the module mpi a choice buffer that is not touched
#   (BOUNDS)       the bounds of an array in the module mpi_f08
#   ~              ASYNCHRONOUS
#   < > & !        INTENT(IN), INTENT(OUT), INTENT(INOUT), no intent, where the kind says something else
#   -              C alone has the parameter
#
# Flags: `mpi`: mpif.h and the module mpi alone have it. `f08`: the module mpi_f08 alone. `_c`: the function of large counts has its C
# name there, and no common one.
# fortran.py writes the table from the standard's package, and compares.

"""
TYPES = {
    "LOGICAL": "logical", "LOGICAL_VOID": "logical", "EXTRA_STATE": "address", "ATTRIBUTE_VAL": "address",
    "EXTRA_STATE2": "integer", "ATTRIBUTE_VAL_10": "integer", "C_BUFFER": "pointer", "C_BUFFER2": "detached",
}


def functions():
    """The names of functions.txt with their kinds, by chapter."""
    for line in (FOLDER / "functions.txt").read_text().splitlines():
        text = line.split(" | ")[0].split("-> ")[0].strip()
        if text.startswith("=="):
            yield text, None
        elif text and not text.startswith("#"):
            name, *words = text.split()
            yield name, [word.rpartition(":")[2] for word in words if word != "..."]


def default(kind):
    """The intent that a kind of functions.txt has."""
    base = kind.rstrip("?*&[]!")
    ending = kind[len(base):].rstrip("?")
    if base in ("out", "inout") or base.endswith("_function") or (base == "status" and ending in ("*", "[]!")):
        return None
    return {"": "in", "[]": "in", "*": "out", "&": "inout", "[]!": "out"}[ending]


def word(kind, fact, rendered):
    """One word of the table: what a parameter is in Fortran."""
    if "f90_parameter" in fact["suppress"]:
        return "-"
    of = TYPES.get(fact["kind"], "buffer" if kind == "pointer" and fact["kind"] == "BUFFER" else "")
    text = fact["name"] + (f":{of}" if of else "")
    declared = rendered.get(fact["name"].lower())
    if declared is None:
        return text
    text += declared["bounds"] + ("~" if declared["asynchronous"] else "")
    if declared["intent"] != default(kind):
        text += {"in": "<", "out": ">", "inout": "&", None: "!"}[declared["intent"]]
    return text


def declarations(text):
    """The parameters of a procedure as the package or our module declares them, by name in small letters."""
    found = {}
    for line in text.splitlines():
        left, colons, right = line.partition("::")
        if not colons or left.strip().upper().startswith(("USE", "IMPORT")):
            continue
        attributes = [part.strip() for part in re.split(r",\s*(?![^(]*\))", left)]
        kind, rest = attributes[0].upper().replace(" ", ""), [part.upper().replace(" ", "") for part in attributes[1:]]
        # The module takes texts of every length, the package's procedures some of a fixed one.
        kind = "CHARACTER" if kind.startswith("CHARACTER") else kind
        intent = next((part[7:-1].lower() for part in rest if part.startswith("INTENT")), None)
        shape = next((part[9:] for part in rest if part.startswith("DIMENSION")), "")
        for name, bounds in re.findall(r"(\w+)\s*(\([^()]*(?:\([^()]*\)[^()]*)*\))?", right):
            found[name.lower()] = {
                "kind": kind + shape, "intent": intent, "asynchronous": "ASYNCHRONOUS" in rest,
                "optional": "OPTIONAL" in rest, "bounds": (bounds or "").replace(" ", ""),
            }
    return found


def rendering(express, large=False):
    chosen = getattr(express, "embiggen", None) if large else express
    shown = getattr(chosen, "f08", None) if chosen else None
    return None if shown is None else str(shown)


def table(facts, procedures):
    """The table as the package would have it."""
    out = HEAD
    for name, kinds in functions():
        if kinds is None:
            out += f"{name}\n\n"
            continue
        key = f"mpi_{name.lower()}"
        fact = facts.get(key)
        if not fact or not (fact["attributes"]["f90_expressible"] or fact["attributes"]["f08_expressible"]):
            continue
        express = procedures[key].express
        declared = {**declarations(rendering(express, True) or ""), **declarations(rendering(express) or "")}
        parameters = [p for p in fact["parameters"] if "c_parameter" not in p["suppress"] and p["kind"] != "VARARGS"]
        assert len(parameters) == len(kinds), name
        words = [word(kind, parameter, declared) for kind, parameter in zip(kinds, parameters)]
        flags = []
        if not fact["attributes"]["f08_expressible"]:
            flags.append("mpi")
        if not fact["attributes"]["f90_expressible"]:
            flags.append("f08")
        if not fact["attributes"]["f08_abstract_interface"] and rendering(express, True):
            flags.append("_c")
        out += f"{name:<28} {' '.join(words)}".rstrip() + (f" | {' '.join(flags)}" if flags else "") + "\n"
    return re.sub(r"\n(== )", r"\n\n\1", re.sub(r"(== [^\n]*\n\n)+(?===|\Z)", "", out)).replace("\n\n\n", "\n\n").rstrip() + "\n"


def module():
    """The text of the module mpi_f08 that we write."""
    if sys.argv[1:2] == ["--module"]:
        return pathlib.Path(sys.argv[2]).read_text()
    command = ["cargo", "run", "--quiet", "-p", "tagwire-mpi-api", "--example", "write", "f08"]
    return subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, check=True).stdout


def written(text):
    """The specific procedures of a module, by name in small letters."""
    text = re.sub(r"&\n\s*&?", "", text)
    found = {}
    for match in re.finditer(r"(?im)^\s*(?:subroutine|function) (\w+)\(([^)]*)\).*\n((?:.*\n)*?)\s*end (?:subroutine|function)", text):
        found[match[1].lower()] = ([name.strip().lower() for name in match[2].split(",") if name.strip()], match[3])
    return found


def compare(procedures):
    """What the module mpi_f08 has that the package declares otherwise."""
    ours, wrong = written(module()), []
    for key, procedure in procedures.items():
        for large in (False, True):
            text = rendering(procedure.express, large)
            if text is None:
                continue
            names = [key + "_c"] if large else [key]
            found = next((ours[name + end] for name in names for end in ("_f08ts", "_f08") if name + end in ours), None)
            found = found or ours.get(names[0])
            if found is None:
                # Where both forms have equal kinds there is one.
                plain = declarations(rendering(procedure.express).replace("MPI_ADDRESS_KIND", "MPI_COUNT_KIND")) if large else None
                if plain != declarations(text.replace("MPI_ADDRESS_KIND", "MPI_COUNT_KIND")):
                    wrong.append(f"{names[0]}: not in the module")
                continue
            theirs, mine = declarations(text), declarations(found[1])
            mine = {name: mine[name] for name in found[0] if name in mine}
            if list(mine) != [name.strip().lower() for name in re.search(r"\(([^)]*)\)\s*(?:\n|$)", text)[1].split(",") if name.strip()]:
                wrong.append(f"{names[0]}: parameters {list(mine)}")
            wrong += [f"{names[0]}: {name}: {mine.get(name)} and not {theirs[name]}" for name in theirs if theirs[name] != mine.get(name)]
    return wrong


def main():
    pympistandard.use_api_version(force_bundled=True)
    from pympistandard.storage import PROCEDURES

    facts = json.loads((pathlib.Path(pympistandard.__file__).parent / "data/apis.json").read_text())
    text = table(facts, PROCEDURES)
    if "--write" in sys.argv[1:]:
        TABLE.write_text(text)
        return 0
    wrong = [] if text == TABLE.read_text() else ["fortran.txt is not what the package says: shim/api/fortran.py --write"]
    wrong += compare(PROCEDURES)
    print("\n".join(wrong) or "the table and the module are as the standard has them")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
