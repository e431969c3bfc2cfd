#!/usr/bin/env python3
"""Tests of the stage of applications: what becomes of one that is right, wrong, late or cannot be built, of what is listed, kept and fetched."""

import contextlib
import hashlib
import io
import json
import os
import pathlib
import shutil
import sys
import tarfile
import tempfile
import time
import types
import unittest
import unittest.mock
import xml.etree.ElementTree

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from suites import apps, launch, plot, sources, times  # noqa: E402


def lives(number):
    """Whether a process runs, and is not just to be waited for."""
    try:
        return pathlib.Path(f"/proc/{number}/stat").read_text().split(")")[1].split()[0] != "Z"
    except OSError:
        return False


HEAD = """
what = "a test"
languages = []
source = { git = "nowhere", revision = "0123456789012345678901234567890123456789" }
"""


class Stage(unittest.TestCase):
    def setUp(self):
        there = tempfile.TemporaryDirectory()
        self.addCleanup(there.cleanup)
        self.folder = pathlib.Path(there.name)
        (self.folder / "tree/bin").mkdir(parents=True)
        self.resume = False
        self.timed = False

    def app(self, text, name="a"):
        (self.folder / "sources" / name).mkdir(parents=True, exist_ok=True)
        (self.folder / f"{name}.toml").write_text(HEAD + text)
        return apps.App.load(self.folder / f"{name}.toml", self.folder / "sources")

    def rows(self, *wanted):
        """Runs applications over one way, with `echo` in the place of what starts ranks."""
        own = apps.Library("tagwire", self.folder / "tree", launch.Launcher(["echo", "ranks"]), "tagwire", "Tagwire")
        gate = apps.Gate(self.folder / "work", own, [], types.SimpleNamespace(resume=self.resume, timed=self.timed, turns=1, seconds=60))
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            return gate.all(wanted, {"shm": {"WAY": "over shm"}})

    def one(self, text):
        (row,) = self.rows(self.app(text))
        return row.outcome, row.good

    def test_what_is_said_decides(self):
        run = 'build = []\n[[run]]\nranks = [2]\nline = "$MPIEXEC -n $N $WAY; exit {}"\nright = ["^ranks -n 2 {}$"]\n{}'
        self.assertEqual(self.one(run.format(0, "over shm", "")), ("right", True))
        self.assertEqual(self.one(run.format(1, "over shm", "")), ("wrong", False))
        self.assertEqual(self.one(run.format(0, "over tcp", "")), ("wrong", False))
        self.assertEqual(self.one(run.format(0, "over shm", 'wrong = "sh"')), ("wrong", False))

    def test_a_line_ends_at_the_first_command_that_fails(self):
        self.assertEqual(self.one('build = []\n[[run]]\nline = "false | true; echo good"\nright = ["good"]'), ("wrong", False))

    def test_what_is_late_is_ended_with_all_that_it_started(self):
        mark = self.folder / "mark"
        text = f'build = []\n[[run]]\nline = "sleep 3600 & echo $! > {mark}; wait"\nright = ["good"]\nseconds = 1'
        self.assertEqual(self.one(text), ("late", False))
        number = mark.read_text().strip()
        # A signal is delivered when the process runs next.
        for _ in range(1000):
            if not lives(number):
                break
            time.sleep(0.01)
        self.assertFalse(lives(number))

    def test_what_is_listed_has_to_be_so(self):
        run = 'build = []\n[[run]]\nranks = [2, 4]\nline = "echo $N"\nright = ["2"]\n[listed]\n{} = "a reason"'
        goods = {place: [row.good for row in self.rows(self.app(run.format(place)))] for place in ('"shm/4"', '"shm/2"', "shm", "tcp")}
        self.assertEqual(goods, {'"shm/4"': [True, True], '"shm/2"': [False, False], "shm": [False, True], "tcp": [True, False]})

    def test_what_is_not_built_is_not_good_and_what_is_not_there_is_left_out(self):
        run = '[[run]]\nline = "true"\nright = [""]\n'
        self.assertEqual(self.one(f'build = ["false"]\n{run}'), ("unbuilt", False))
        self.assertEqual(self.one(f'build = []\n{run}[needs]\n"/nowhere/*" = "none"'), ("skip", True))
        self.assertEqual(self.one(f'build = []\n{run}[needs]\n"/*" = "none"'), ("right", True))

    def test_what_cannot_be_fetched_names_what_its_machine_lacks(self):
        app = self.app('build = []\n[[run]]\nline = "true"\nright = [""]\n[needs]\n"/nowhere" = "none"')
        with unittest.mock.patch.object(sources, "fetch", side_effect=sources.Failed("no libraries")):
            with self.assertRaisesRegex(sources.Failed, r"needs /nowhere \(Debian: none\): no libraries"):
                app.fetch()

    def test_it_is_built_once_and_again_where_a_line_or_a_file_has_changed(self):
        count = self.folder / "count"
        text = f'build = ["cat said", "echo >> {count}"]\n[[run]]\nline = "true"\nright = [""]\n[files]\nsaid = "{{}}"'
        for said, times in (("a", 1), ("a", 1), ("b", 2)):
            self.rows(self.app(text.format(said)))
            self.assertEqual(len(count.read_text()), times)
        (self.folder / "tree/include").mkdir()
        (self.folder / "tree/include/mpi.h").write_text("another header")
        self.rows(self.app(text.format("b")))
        self.assertEqual(len(count.read_text()), 3)

    def test_what_was_right_is_left_out_on_request_until_the_library_has_changed(self):
        count = self.folder / "count"
        app = self.app(f'build = []\n[[run]]\nline = "echo >> {count}"\nright = [""]')
        self.rows(app)
        self.resume = True
        self.assertEqual([row.outcome for row in self.rows(app)], ["right"])
        self.assertEqual(len(count.read_text()), 1)
        (self.folder / "tree/lib").mkdir()
        (self.folder / "tree/lib/libmpi_abi.so.1").write_text("another library")
        self.rows(app)
        self.assertEqual(len(count.read_text()), 2)

    def test_what_is_not_timed_is_left_out_on_request_and_not_built(self):
        one, other = '[[run]]\nname = "one"\nline = "true"\nright = [""]\n', '[[run]]\nname = "other"\nline = "true"\nright = [""]\ntimed = true'
        self.timed = True
        self.assertEqual([row.case.name for row in self.rows(self.app("build = []\n" + one + other))], ["a other"])
        mark = self.folder / "mark"
        self.assertEqual(self.rows(self.app(f'build = ["touch {mark}"]\n' + one, "b")), [])
        self.assertFalse(mark.exists())

    def test_a_row_has_the_median_of_turns_and_is_marked_where_all_of_ours_took_longer(self):
        (row,) = self.rows(self.app('build = []\n[[run]]\nline = "true"\nright = [""]'))
        for own, said in (([2, 4, 3], "3.00 (2.00 to 4.00) | 1.50 (1.00 to 2.50) | 9.00 | 2.00"), ([3, 4, 5], "4.00 (3.00 to 5.00) | 1.50 (1.00 to 2.50) | 9.00 | **2.67**")):
            row.seconds = {"tagwire": own, "mpich": [1, 2.5, 1.5], "openmpi": [9]}
            self.assertIn(said, row.line(["tagwire", "mpich", "openmpi"]))
        row.seconds = {"tagwire": [1]}
        self.assertTrue(row.line(["tagwire", "mpich"]).endswith("| 1.00 |  |  |"))

    def test_what_a_stage_takes_is_counted_by_what_was_built_and_run_last(self):
        own = apps.Library("tagwire", self.folder / "tree", launch.Launcher(["echo"]), "tagwire", "Tagwire")
        (self.folder / "work").mkdir()
        kept = {"a, built with tagwire": {"built": 7200}, "a, built with openmpi": {"built": 9000}, "a, shm, 2 ranks": {"seconds": {"tagwire": [900, 1800, 3600], "mpich": [9999]}},
                "b, shm, 2 ranks": {"outcome": "wrong", "seconds": {}}}
        (self.folder / "work/results.json").write_text(json.dumps(kept))
        gate = apps.Gate(self.folder / "work", own, [], types.SimpleNamespace())
        self.assertEqual(gate.whole(), "whole stage, by what is kept: 1 built in 2.00 hours, 1 runs in 0.50")

    def test_descriptions_that_say_nothing_are_refused(self):
        for text, said in (
            ('[[run]]\nline = ""\nright = []', "there is no build"),
            ('build = []\nrum = 1\n[[run]]\nline = ""\nright = []', "nothing is called rum"),
            ('build = []\n[[run]]\nline = ""', "a run has no right"),
            ('build = []\n[[run]]\nline = ""\nright = ["("]', "the pattern"),
            ('build = []\n[[run]]\nline = ""\nright = []\n[listed]\nucx = ""', "'ucx' is listed"),
        ):
            with self.assertRaisesRegex(apps.Wrong, said):
                self.app(text)


def taken(*rows, machine="here"):
    """Returns times of rows (application, ranks, ours, MPICH's)."""
    values = [{"application": name, "over": "shm", "ranks": ranks, "seconds": {"tagwire": own, "mpich": other}} for name, ranks, own, other in rows]
    return times.Times(machine, {"tagwire": "Tagwire", "mpich": "MPICH 5"}, values)


class Times(unittest.TestCase):
    def test_rows_that_were_taken_again_take_the_place_of_the_old_ones(self):
        before = taken(("a", 2, [1], [2]), ("c", 2, [3], [4]))
        now = taken(("b", 2, [5], [6]), ("a", 2, [7], [8])).over(before)
        self.assertEqual([(row["application"], row["seconds"]["tagwire"]) for row in now.rows], [("a", [7]), ("b", [5]), ("c", [3])])
        with self.assertRaisesRegex(times.Wrong, "machine"):
            taken(("a", 2, [1], [2]), machine="there").over(before)

    def test_a_file_is_read_as_it_was_written(self):
        with tempfile.TemporaryDirectory() as there:
            file = pathlib.Path(there) / "times.json"
            file.write_text(taken(("a", 2, [1, 2, 4], [4, 8, 5]), ("b", 2, [1], [])).written())
            self.assertEqual(times.Times.load(file).table()[2:], ["| a | 2 | 2.00 (1.00 to 4.00) | 5.00 (4.00 to 8.00) | 0.40 |", "", "here"])
            file.write_text("[]")
            with self.assertRaisesRegex(times.Wrong, "has no times"):
                times.Times.load(file)

    def test_the_plot_has_the_programs_with_more_ranks_than_processors(self):
        drawn = plot.svg(taken(("a & b", 4, [1, 2, 4], [4, 5, 8]), ("c", 2, [1], [2])), 2)
        self.assertIn("a &amp; b, 4 ranks", drawn)
        self.assertIn(">0.40<", drawn)
        self.assertNotIn("c, 2 ranks", drawn)
        xml.etree.ElementTree.fromstring(drawn)
        with self.assertRaisesRegex(times.Wrong, "no program with more than 2 ranks"):
            plot.svg(taken(("c", 2, [1], [2])), 2)

    def test_the_axis_has_all_values_in_their_order(self):
        axis = plot.Axis([0.3, 3])
        self.assertEqual(axis.ticks(), [0.25, 0.5, 1, 2, 4])
        self.assertEqual(axis.place(0.25), plot.LEFT)
        self.assertEqual(axis.place(4), plot.WIDTH - plot.RIGHT)
        self.assertLess(axis.place(0.3), axis.place(1))

    def test_pages_have_the_table_and_the_plot_of_what_is_stored(self):
        """`ci/mpi APPS --from docs/results/MACHINE/programs.json` makes both anew."""
        docs = pathlib.Path(__file__).resolve().parents[2] / "docs"
        files = list((docs / "results").glob("*/programs.json"))
        self.assertTrue(files)
        for file in files:
            kept = times.Times.load(file)
            self.assertTrue("\n".join(kept.table()[:-2]) in (docs / "mpi.md").read_text(), f"{file}: docs/mpi.md has another table")
            drawn = docs / f"plots/programs-{file.parent.name.lower()}.svg"
            self.assertTrue(drawn.read_text() == plot.svg(kept, apps.PROCESSORS), f"{drawn} is not what is stored")


class Sources(unittest.TestCase):
    def test_sources_are_pinned(self):
        digits = "0" * 64
        self.assertIsNone(sources.wrong({"archive": "a", "sha256": digits}))
        self.assertIn("no sha256", sources.wrong({"archive": "a"}))
        self.assertIn("64 digits", sources.wrong({"archive": "a", "sha256": "0"}))
        self.assertIn("40 digits", sources.wrong({"git": "a", "revision": "main"}))
        self.assertIn("no setting", sources.wrong({"git": "a", "revision": "0" * 40, "sha256": digits}))
        self.assertIn("none of", sources.wrong({}))
        package = {"pypi": "a", "version": "1", "sha256": digits}
        self.assertIsNone(sources.wrong({**package, "with": ["b==2"], "sources": ["c==3"]}))
        self.assertIn("b of the source has no version", sources.wrong({**package, "with": ["b"]}))
        self.assertIn("no setting with", sources.wrong({"archive": "a", "sha256": digits, "with": ["b==2"]}))

    def test_a_crate_is_built_from_its_folder_alone(self):
        with tempfile.TemporaryDirectory() as there, unittest.mock.patch.dict(os.environ, CARGO_HOME=f"{there}/first"):
            there = pathlib.Path(there)
            other, crate = there / "other", there / "crate"
            for folder, depends in [(other, ""), (crate, f'other = {{ git = "{other.as_uri()}" }}')]:
                (folder / "src").mkdir(parents=True)
                (folder / "src/lib.rs").write_text("")
                (folder / "Cargo.toml").write_text(f'[package]\nname = "{folder.name}"\nversion = "0.0.0"\nedition = "2021"\n\n[dependencies]\n{depends}\n\n[workspace]\n')
            git = ["git", "-C", other, "-c", "user.name=a", "-c", "user.email=a@localhost"]
            for words in [["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "a"]]:
                sources.run([*git, *words])
            sources.run(["cargo", "generate-lockfile", "--quiet"], crate)
            sources.vendor(crate)
            os.environ["CARGO_HOME"] = f"{there}/second"
            shutil.rmtree(other)
            known = json.loads(sources.run(["cargo", "metadata", "--format-version", "1", "--offline", "--locked"], crate))
            self.assertEqual(sorted(package["name"] for package in known["packages"]), ["crate", "other"])

    def test_an_archive_is_there_whole_or_not_at_all(self):
        with tempfile.TemporaryDirectory() as there:
            folder = pathlib.Path(there)
            (folder / "a").write_text("a")
            with tarfile.open(folder / "archive.tar.gz", "w:gz") as archive:
                for name in ("top/kept", "top/left"):
                    archive.add(folder / "a", name)
            digits = hashlib.sha256((folder / "archive.tar.gz").read_bytes()).hexdigest()
            source = {"archive": f"file://{folder}/archive.tar.gz", "sha256": digits, "only": ["*/kept"]}
            sources.fetch(source, folder / "good")
            self.assertEqual([path.name for path in (folder / "good").iterdir()], ["kept"])
            with self.assertRaisesRegex(sources.Failed, "SHA-256"):
                sources.fetch({**source, "sha256": "0" * 64}, folder / "bad")
            self.assertEqual([path.name for path in folder.glob("bad*")], [])


if __name__ == "__main__":
    unittest.main()
