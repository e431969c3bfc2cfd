"""Where sources come from, and how they are brought: whole, or not at all.

    git = "ADDRESS", revision = "..."                                a commit
    archive = "ADDRESS", sha256 = "..."                              an archive (of a suite also without its checksum)
    debian = "PACKAGE", version = "...", file = "...", sha256 = ".." the archive of upstream in a source package of Debian
    crate = "NAME", version = "...", sha256 = "..."                  a crate, with all that it depends on
    pypi = "NAME", version = "...", sha256 = "..."                   a source archive of PyPI; beside it, in `packages`, what `with` and `sources` name as
                                                                     NAME==VERSION: packages as they come, and those that are to be built here

What `only` names (patterns of tar) is unpacked alone.
"""

import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib

KINDS = {"git": {"revision"}, "archive": {"sha256"}, "debian": {"version", "file", "sha256"}, "crate": {"version", "sha256"},
         "pypi": {"version", "sha256"}}
# What a kind may have beyond.
MORE = {"pypi": {"with", "sources"}}


class Failed(Exception):
    """A command that has failed, with what it said."""


def run(command, folder=None, environment=None):
    done = subprocess.run(list(map(str, command)), cwd=folder, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise Failed(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def kind(source):
    """Returns the kind of a description's source."""
    return next((name for name in KINDS if name in source), None)


def wrong(source):
    """Returns what is wrong with the description of a source, which has to be pinned; nothing where it is right."""
    if not (name := kind(source)):
        return f"source is none of {', '.join(KINDS)}"
    if missing := sorted(KINDS[name] - source.keys()):
        return f"source {name} has no {missing[0]}"
    if unknown := sorted(source.keys() - KINDS[name] - MORE.get(name, set()) - {name, "only"}):
        return f"source {name} has no setting {unknown[0]}"
    if loose := [package for key in ("with", "sources") for package in source.get(key, []) if "==" not in package]:
        return f"{loose[0]} of the source has no version"
    length = {"revision": 40, "sha256": 64}
    for key, digits in length.items():
        if key in source and not re.fullmatch(rf"[0-9a-f]{{{digits}}}", source[key]):
            return f"{key} of the source is not {digits} digits of base 16"
    return None


def fetch(source, place):
    """Brings a source to a folder that is not there."""
    partial = place.with_name(f"{place.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        BRINGS[kind(source)](source, partial)
        partial.rename(place)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def of_git(source, folder):
    run(["git", "-C", folder, "init", "--quiet"])
    run(["git", "-C", folder, "fetch", "--quiet", "--depth", "1", source["git"], source["revision"]])
    run(["git", "-C", folder, "checkout", "--quiet", "FETCH_HEAD"])


def of_archive(source, folder):
    with tempfile.TemporaryDirectory() as there:
        file = pathlib.Path(there) / "archive"
        run(["curl", "--fail", "--silent", "--show-error", "--location", "--output", file, source["archive"]])
        unpack(source, file, folder)


def of_debian(source, folder):
    """Asks apt for the sources of the machine's own distribution, by lists of its own: the machine's configuration stays."""
    with tempfile.TemporaryDirectory() as there:
        there = pathlib.Path(there)
        environment = {**os.environ, "APT_CONFIG": str(apt(there))}
        run(["apt-get", "update"], there, environment)
        package = f"{source['debian']}={source['version']}"
        run(["apt-get", "source", "--download-only", "--only-source", "--tar-only", package], there, environment)
        if not (there / source["file"]).exists():
            raise Failed(f"{package} has no file {source['file']}")
        unpack(source, there / source["file"], folder)


def apt(folder):
    """Writes a configuration of apt whose sources are those of the machine's packages; returns its file."""
    lines = []
    for file in [pathlib.Path("/etc/apt/sources.list"), *sorted(pathlib.Path("/etc/apt/sources.list.d").glob("*"))]:
        if file.suffix in (".list", ".sources") and file.exists():
            text = re.sub(r"(?m)^Types:.*$", "Types: deb-src", file.read_text())
            (folder / file.name).write_text(re.sub(r"(?m)^deb\s", "deb-src ", text))
            lines.append(f'Dir::Etc::sourceparts "{folder}";')
    (folder / "lists/partial").mkdir(parents=True)
    (folder / "cache/archives/partial").mkdir(parents=True)
    lines = [*lines[:1], f'Dir::Etc::sourcelist "-"; Dir::State::lists "{folder}/lists"; Dir::Cache "{folder}/cache"; APT::Sandbox::User "root";']
    (folder / "apt.conf").write_text("\n".join(lines) + "\n")
    return folder / "apt.conf"


def of_crate(source, folder):
    """Asks cargo for a crate, by a package that depends on it alone, and for what its examples and tests depend on."""
    name, version = source["crate"], source["version"]
    with tempfile.TemporaryDirectory() as there:
        there = pathlib.Path(there)
        (there / "src").mkdir()
        (there / "src/lib.rs").write_text("")
        (there / "Cargo.toml").write_text(f'[package]\nname = "depends"\nversion = "0.0.0"\nedition = "2021"\n\n[dependencies]\n{name} = "={version}"\n\n[workspace]\n')
        run(["cargo", "vendor", "--quiet", "--versioned-dirs"], there)
        locked = {package["name"]: package.get("checksum") for package in tomllib.loads((there / "Cargo.lock").read_text())["package"]}
        if locked[name] != source["sha256"]:
            raise Failed(f"the checksum of {name} {version} is {locked[name]}, and not {source['sha256']}")
        shutil.copytree(there / f"vendor/{name}-{version}", folder, dirs_exist_ok=True)
    vendor(folder)


def vendor(folder):
    """Brings all that a crate depends on into its folder, from where cargo takes it then."""
    # What has to be written for that cargo says, unless it is to be quiet.
    told = run(["cargo", "vendor", "--locked"], folder)
    (folder / ".cargo").mkdir(exist_ok=True)
    (folder / ".cargo/config.toml").write_text(told)


def of_pypi(source, folder):
    """Asks pip for a source archive, and for the packages that it is built and run with."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    with tempfile.TemporaryDirectory() as there:
        name, packages = source["pypi"], pathlib.Path(there) / "packages"
        run([*pip, "--no-binary", name, "--dest", there, f"{name}=={source['version']}"])
        (archive,) = (path for path in pathlib.Path(there).iterdir() if path.is_file())
        unpack(source, archive, folder)
        for key in ("with", "sources"):
            # By name: what pip builds them with may come as it is.
            named = ",".join(package.partition("==")[0] for package in source.get(key, []))
            if named:
                run([*pip, *(["--no-binary", named] if key == "sources" else []), "--dest", packages, *source[key]])
        shutil.copytree(packages, folder / "packages")


def unpack(source, archive, folder):
    with open(archive, "rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != source.get("sha256", found):
        raise Failed(f"the SHA-256 of {archive.name} is {found}, and not {source['sha256']}")
    run(["tar", "xf", archive, "--strip-components", "1", "-C", folder, *(["--wildcards", *source["only"]] if "only" in source else [])])


BRINGS = {"git": of_git, "archive": of_archive, "debian": of_debian, "crate": of_crate, "pypi": of_pypi}
