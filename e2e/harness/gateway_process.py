"""The built gateway as a process in a directory: its authority, settings, policy, log and events."""

import json
import os
import re
import signal
import subprocess
from functools import cached_property

from commands import end, run
from waiting import becomes

SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")


class GatewayProcess:
    """At most one process at a time; its log and events go on over restarts. `place` makes of a command one that runs where
    the gateway is, and `keys` are variables of its environment."""

    def __init__(self, postern, directory, place=list, keys=()):
        self.postern, self.directory, self.process = postern, directory, None
        self.settings, self.policy, self.state = directory / "settings.yaml", directory / "policy.yaml", directory / "state"
        self.log, self.events = directory / "gateway.log", directory / "events.jsonl"
        self.place, self.environment = place, {"PATH": os.environ["PATH"], "POSTERN_INTERCEPT": "1"} | dict(keys)
        self.state.mkdir()
        run(postern, "ca", "init", "--directory", directory / "ca")

    def configure(self, policy, listeners, upstream, admin="127.0.0.1:0", **more):
        """Writes policy and settings; the upstreams' authority is in `upstream.crt`."""
        self.policy.write_text(policy)
        self.settings.write_text(
            json.dumps(
                {  # JSON is YAML.
                    "listeners": listeners,
                    "admin": {"address": admin, "socket": "state/status.sock"},
                    "interception": {"mode": "Required", "caCertificate": "ca/ca-cert.pem", "caKey": "ca/ca-key.pem"},
                    "policy": {"path": self.policy.name},
                    "upstream": {"roots": ["upstream.crt"]} | upstream,
                }
                | more
            )
        )

    def give_to(self, uid):
        """Gives a user what the gateway reads and writes alone."""
        for path in (self.state, self.directory / "ca", self.directory / "ca/ca-key.pem"):
            os.chown(path, uid, uid)

    def command(self):
        return list(map(str, self.place([self.postern, "gateway", "--config", self.settings])))

    def start(self):
        """Returns once it is ready."""
        if self.is_alive():
            raise RuntimeError("the gateway runs already")
        with self.events.open("a") as events, self.log.open("a") as log:
            self.process = subprocess.Popen(self.command(), env=self.environment, stdout=events, stderr=log)
        self.demand(self.is_ready)

    def stop(self):
        """Its exit status."""
        if self.is_alive():
            end(self.process)
        return self.process and self.process.returncode

    def is_alive(self):
        return self.process is not None and self.process.poll() is None

    def is_ready(self):
        status = self.status()
        return bool(status and status["ready"])

    def status(self):
        """The gateway's status, or None before it has any."""
        ask = [self.postern, "status", "--socket", self.state / "status.sock", "--output", "json"]
        printed = subprocess.run(ask, capture_output=True, check=False).stdout
        return json.loads(printed) if printed else None

    @cached_property
    def address(self):
        """Where the explicit listener is."""
        (address,) = [each["address"] for each in self.status()["listeners"] if each["mode"] == "explicit"]
        return address

    def reload(self):
        self.process.send_signal(signal.SIGHUP)

    def apply(self, policy):
        """Puts another policy in force."""
        if policy != self.policy.read_text():
            before = self.status()["policy"]["revision"]
            # Replaced whole: the gateway looks at the file by itself, too, and would see a half-written one.
            written = self.policy.with_suffix(".new")
            written.write_text(policy)
            written.replace(self.policy)
            self.reload()
            self.demand(lambda: self.status()["policy"]["revision"] != before)

    def becomes(self, holds):
        """Whether a condition comes to hold before the deadline or the process's end."""
        state = lambda: "holds" if holds() else "" if self.is_alive() else "ended"
        return becomes(state, pause=0.02) == "holds" or bool(holds())

    def demand(self, holds):
        if not self.becomes(holds):
            raise RuntimeError(f"the gateway does not come to where it should:\n{self.log.read_text()[-2000:]}")


def metric(text, name, **labels):
    """The sum of a metric over all series with these labels, or None where there is none."""
    samples = [SAMPLE.match(line) for line in text.splitlines() if line[:1] != "#"]
    wanted = [f'{label}="{value}"' for label, value in labels.items()]
    values = [float(sample[3]) for sample in samples if sample and sample[1] == name and all(each in (sample[2] or "").split(",") for each in wanted)]
    return sum(values) if values else None
