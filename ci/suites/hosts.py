"""Two hosts: network namespaces of this machine with a cable between them, and MPICH's Hydra over both."""

import os
import pathlib
import subprocess
import tempfile

from suites.launch import Absent, Launcher


class Hosts(Launcher):
    """Starts the first half of the ranks on one host, and the others on the other, as long as this is open."""

    NET = "10.241.77"

    def __init__(self, peers, prefix):
        hydra = peers / "mpich/bin/mpiexec.hydra"
        if not hydra.exists():
            raise Absent("needs `ci/peers mpich`")
        self.names = [f"tagwire-{os.getpid()}{letter}" for letter in "ab"]
        self.addresses = [f"{self.NET}.{number}" for number in (1, 2)]
        self.folder = tempfile.TemporaryDirectory(prefix="hosts")
        try:
            self.plug()
        except (OSError, subprocess.CalledProcessError) as error:
            self.close()
            raise Absent(f"needs root, network namespaces and the command ip: {error}") from error
        shell = ["-launcher", "ssh", "-iface", "eth0", "-launcher-exec", self.shell()]
        super().__init__(["ip", "netns", "exec", self.names[0], hydra, *shell, "-hosts", ",".join(self.addresses)])

    def line(self, ranks, program, arguments):
        return [*self.command, "-ppn", str((ranks + 1) // 2), "-n", str(ranks), str(program), *arguments]

    def plug(self):
        first, second = self.names
        for name in self.names:
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        ip("-n", first, "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", second)
        for name, address in zip(self.names, self.addresses):
            ip("-n", name, "address", "add", f"{address}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")

    def shell(self):
        """Writes the remote shell that Hydra wants: `FILE [OPTIONS] ADDRESS COMMAND...`. What it starts has a host of its own by
        the setting `host`."""
        cases = "\n".join(f"    {address}) host={name} ;;" for name, address in zip(self.names, self.addresses))
        text = f"""#!/bin/sh
while [ "${{1#-}}" != "$1" ]; do shift; done
case $1 in
{cases}
esac
shift
exec ip netns exec $host env TAGWIRE_HOST=$host sh -c "$*"
"""
        file = pathlib.Path(self.folder.name) / "rsh"
        file.write_text(text)
        file.chmod(0o755)
        return file

    def close(self):
        for name in self.names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True)
        self.folder.cleanup()


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, capture_output=True)
