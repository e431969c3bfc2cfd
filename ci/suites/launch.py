"""Launchers: the command in front of a program, and the variables that come with it. Found below target/peers, where `ci/peers` and
`ci/slurm` leave them.
"""

import contextlib
import glob
import os
import pathlib
import socket
import subprocess
import tempfile
import time


class Absent(Exception):
    """A launcher that is not here."""


class Launcher:
    """Starts ranks by a command that ends in `-n RANKS`."""

    def __init__(self, command, variables=None):
        self.command = list(map(str, command))
        self.variables = variables or {}

    def line(self, ranks, program, arguments):
        return [*self.command, "-n", str(ranks), str(program), *arguments]

    def close(self):
        pass


class Slurm(Launcher):
    """`srun` of Slurm's two daemons, which run on this machine as long as this is open. The packages' files lie over /usr in their
    mount namespaces alone."""

    def __init__(self, root, kind):
        if not (root / "installed").exists():
            raise Absent("needs `ci/slurm`")
        self.inside = ["unshare", "-m", "sh", "-c", 'mount -t overlay overlay -o "lowerdir=$0/usr:/usr" /usr && exec "$@"', str(root)]
        libraries = next(pathlib.Path("/usr/lib") / path.parent.name for path in root.glob("usr/lib/*/slurm-wlm"))
        self.state = tempfile.TemporaryDirectory(prefix="slurm")
        folder = pathlib.Path(self.state.name)
        variables = {"SLURM_CONF": str(folder / "slurm.conf"), "LD_LIBRARY_PATH": str(libraries / "slurm-wlm")}
        super().__init__([*self.inside, "srun", "--overcommit", "--kill-on-bad-exit=1", f"--mpi={kind}"], variables)
        self.daemons = []
        if subprocess.run([*self.inside, "true"], capture_output=True).returncode:
            raise Absent("needs root, mount namespaces and overlays")
        host = socket.gethostname().split(".")[0]
        for name in ("state", "spool"):
            (folder / name).mkdir()
        (folder / "slurm.conf").write_text(settings(folder, host, libraries / "slurm-wlm"))
        self.serve(folder, "slurmctld-wlm", "-D")
        self.serve(folder, "slurmd-wlm", "-D", "-N", host, "-d", "/usr/sbin/slurmstepd-wlm")
        deadline = time.monotonic() + 60
        while self.asked("sinfo", "-h", "-o", "%T") != "idle":
            if time.monotonic() > deadline:
                self.close()
                raise Absent("its daemons do not come up")
            time.sleep(0.2)

    def asked(self, *command):
        return subprocess.run([*self.inside, *command], env={**os.environ, **self.variables}, capture_output=True, text=True).stdout.strip()

    def serve(self, folder, *command):
        with open(folder / command[0], "wb") as log:
            self.daemons.append(subprocess.Popen([*self.inside, *command], env={**os.environ, **self.variables},
                                                 stdin=subprocess.DEVNULL, stdout=log, stderr=log))

    def close(self):
        for daemon in reversed(self.daemons):
            daemon.kill()
            daemon.wait()
        self.state.cleanup()


def settings(folder, host, libraries):
    """Returns slurm.conf for one host, without munge, cgroups and a database."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2)]
        ports = [one.getsockname()[1] for one in sockets]
    lines = {
        "ClusterName": "tagwire", "SlurmctldHost": f"{host}(127.0.0.1)", "AuthType": "auth/none", "CredType": "cred/none",
        "PluginDir": libraries, "SlurmUser": "root", "SlurmdUser": "root", "StateSaveLocation": folder / "state",
        "SlurmdSpoolDir": folder / "spool", "SlurmctldPidFile": folder / "slurmctld.pid", "SlurmdPidFile": folder / "slurmd.pid",
        "SlurmctldPort": ports[0], "SlurmdPort": ports[1], "ProctrackType": "proctrack/linuxproc", "TaskPlugin": "task/none",
        "JobAcctGatherType": "jobacct_gather/none", "SelectType": "select/cons_tres", "SelectTypeParameters": "CR_CPU",
        "ReturnToService": 2, "MpiDefault": "none", "KillWait": 2,
    }
    text = "".join(f"{name}={value}\n" for name, value in lines.items())
    text += f"NodeName={host} NodeAddr=127.0.0.1 CPUs={os.cpu_count()} State=UNKNOWN\n"
    return text + f"PartitionName=all Nodes={host} Default=YES State=UP OverSubscribe=FORCE:4\n"


def of_mpich(name):
    def make(peers, prefix):
        found = [*glob.glob(str(peers / f"mpich/bin/{name}"))]
        if not found:
            raise Absent("needs `ci/peers mpich`")
        return Launcher([found[0]])

    return make


def of_open_mpi(peers, prefix):
    prterun = peers / "openmpi/bin/prterun"
    if not prterun.exists():
        raise Absent("needs `ci/peers openmpi`")
    allowed = {name: "1" for name in ("PRTE_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM")}
    return Launcher([prterun, "--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"], allowed)


LAUNCHERS = {
    "run": lambda peers, prefix: Launcher([prefix / "bin/tagwire", "run"]),
    "hydra": of_mpich("mpiexec.hydra"),
    "gforker": of_mpich("mpiexec.gforker"),
    "prterun": of_open_mpi,
    "pmi2": lambda peers, prefix: Slurm(peers / "slurm", "pmi2"),
    "pmix": lambda peers, prefix: Slurm(peers / "slurm", "pmix"),
}
