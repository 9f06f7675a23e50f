"""A training run that is killed while it writes a checkpoint."""

import os
import signal
import subprocess
import threading
import time


def run_and_kill(command, checkpoints, step):
    """Runs `command` and kills it with SIGKILL inside the write of the first checkpoint at or after
    `step`. The name of the unfinished checkpoint; None when the run ended before."""
    process = subprocess.Popen(command)
    found = []

    def watch():
        while process.poll() is None:
            for name in unfinished(checkpoints):
                if int(name.split("-")[1].split(".")[0]) >= step:
                    # A moment later some of the bytes are there, and not yet all.
                    time.sleep(0.002)
                    os.kill(process.pid, signal.SIGKILL)
                    found.append(name)
                    return
            time.sleep(0.001)

    watcher = threading.Thread(target=watch)
    watcher.start()
    code = process.wait()
    watcher.join()
    if code == -signal.SIGKILL and found:
        # The write was under way only if its directory never got its final name.
        return found[0] if (checkpoints / found[0]).exists() else None
    if code != 0:
        raise subprocess.CalledProcessError(code, command)
    return None


def unfinished(checkpoints):
    try:
        return [name for name in os.listdir(checkpoints) if ".tmp-" in name]
    except FileNotFoundError:
        return []
