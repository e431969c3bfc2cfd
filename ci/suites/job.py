"""Jobs: a command as a session of its own, so that none of its processes is left when it is late."""

import os
import signal
import subprocess
import time


def run(command, environment, folder, log, seconds):
    """Runs a command with its output in a file; returns its status, None where it was late, how long it took, and what it said."""
    began = time.monotonic()
    with open(log, "wb") as output:
        job = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                               start_new_session=True, cwd=folder)
        try:
            status = job.wait(seconds)
        except subprocess.TimeoutExpired:
            status = None
            end(job)
        except BaseException:
            end(job)
            raise
    return status, time.monotonic() - began, log.read_text(errors="replace")


def end(job):
    for number, patience in ((signal.SIGTERM, 10), (signal.SIGKILL, 10)):
        try:
            os.killpg(job.pid, number)
            job.wait(patience)
            return
        except subprocess.TimeoutExpired:
            continue
