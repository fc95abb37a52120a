"""Processes that are recorded by their ids, so that a later run can end what an earlier one left."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

PATIENCE = 20


class Processes:
    """Started by name, at most one of each; the records and logs are in a directory."""

    def __init__(self, directory):
        self.records, self.logs = directory / "processes", directory / "log"
        self.children = {}

    def start(self, name, *command, environment=None):
        """It goes on when this program ends, until `stop`."""
        for directory in (self.records, self.logs):
            directory.mkdir(parents=True, exist_ok=True)
        if self.is_alive(name):
            return
        with self.log(name).open("a") as log:
            process = subprocess.Popen(
                list(map(str, command)), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, env=environment
            )
        self.children[name] = process
        record = {"process": process.pid, "started": beginning(process.pid)}
        (self.records / name).write_text(json.dumps(record))

    def stop(self, name, patience=PATIENCE):
        process = self.process(name)
        if process is not None:
            os.kill(process, signal.SIGTERM)
            if not self._ends(name, patience):
                os.kill(process, signal.SIGKILL)
                self._ends(name, patience)
        (self.records / name).unlink(missing_ok=True)

    def kill(self, name):
        """SIGKILL, and its end."""
        os.kill(self.process(name), signal.SIGKILL)
        self._ends(name, PATIENCE)

    def is_alive(self, name):
        return self.process(name) is not None

    def process(self, name):
        """The id of a process that runs, or None; an id that somebody else has by now is not it."""
        if name in self.children:
            self.children[name].poll()
        record = self.records / name
        if not record.exists():
            return None
        recorded = json.loads(record.read_text())
        return recorded["process"] if beginning(recorded["process"]) == recorded["started"] else None

    def names(self):
        return [record.name for record in self.records.glob("*")]

    def log(self, name):
        return self.logs / f"{name}.log"

    def _ends(self, name, patience):
        deadline = time.monotonic() + patience
        while self.is_alive(name) and time.monotonic() < deadline:
            time.sleep(0.05)
        return not self.is_alive(name)


def beginning(process):
    """When a process began, in the kernel's ticks (proc(5): field 22), or None where it does not run."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] == "Z" else fields[19]
