"""Jobs: a command as a session of its own, so that none of its processes is left when it is late."""

import os
import select
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
            ended = ends(job, seconds)
            took = time.monotonic() - began
            status = job.wait() if ended else None
            if not ended:
                end(job)
        except BaseException:
            end(job)
            raise
    return status, took, log.read_text(errors="replace")


def ends(job, seconds):
    """Waits for the end of a job, and returns whether it came in time. The kernel tells it: `Popen.wait` looks every 50 ms, which would be a part of the time."""
    with open(os.pidfd_open(job.pid), "rb") as process:
        poll = select.poll()
        poll.register(process, select.POLLIN)
        return bool(poll.poll(seconds * 1000))


def end(job):
    for number, patience in ((signal.SIGTERM, 10), (signal.SIGKILL, 10)):
        try:
            os.killpg(job.pid, number)
            job.wait(patience)
            return
        except subprocess.TimeoutExpired:
            continue
