"""The built gateway as the pod's sidecar: its own UID, no capabilities, killed and started as a test asks."""

import http.client
import os
import signal
import subprocess
import time

from agent import Identity

UID = 61234
ADMIN = 15090
PORTS = {"transparent": 15001, "explicit": 15002, "dns": 15053, "admin": ADMIN}
PATIENCE = 120
PROVEN = "postern_interception_proven"


class Gateway:
    """At most one process at a time; its log goes on over restarts."""

    def __init__(self, topology, postern, settings, log):
        self.topology, self.log, self.process = topology, log, None
        identity = Identity("gateway", UID, ())
        self.command = topology.command("pod", *identity.command(postern, "gateway", "--config", settings))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self):
        """Returns once it is ready."""
        if self.is_alive():
            raise RuntimeError("the gateway runs already")
        with self.log.open("a") as log:
            self.process = subprocess.Popen(self.command, env=ENVIRONMENT, stdout=log, stderr=log)
        if not self.becomes(self.is_ready):
            raise RuntimeError(f"the gateway is not ready: {self.ask('/readyz')}\n{self.log.read_text()[-2000:]}")

    def refused_start(self):
        """Exit status and standard error of a start that must fail."""
        options = {"capture_output": True, "text": True, "timeout": PATIENCE, "check": False}
        done = subprocess.run(self.command, env=ENVIRONMENT, **options)
        return done.returncode, done.stderr

    def kill(self):
        """SIGKILL: no socket is closed in good order."""
        self.process.kill()
        self.process.wait(PATIENCE)

    def stop(self):
        if self.is_alive():
            self.process.terminate()
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.kill()

    def socket(self, family, kind):
        """A socket in the pod that is the gateway's, as far as the kernel's rules can tell."""
        return self.topology.socket("pod", family, kind, owner=UID)

    def prove_again(self):
        """A reload makes it prove interception now rather than within the minute."""
        self.process.send_signal(signal.SIGHUP)

    def is_alive(self):
        return self.process is not None and self.process.poll() is None

    def is_ready(self):
        return self.ask("/readyz")[0] == 200

    def proven(self):
        """The metric's value, or None where there is none."""
        return self.metric(PROVEN)

    def metric(self, name):
        """The sum over a metric's labels, or None."""
        lines = [line.split() for line in self.ask("/metrics")[1].splitlines()]
        values = [float(line[-1]) for line in lines if line and line[0].split("{")[0] == name]
        return sum(values) if values else None

    def ask(self, path, host="pod", address="127.0.0.1"):
        """Status and body from the admin port, or (None, reason)."""
        with self.topology.inside(host):
            connection = http.client.HTTPConnection(address, ADMIN, timeout=5)
            try:
                connection.request("GET", path)
                answer = connection.getresponse()
                return answer.status, answer.read().decode(errors="replace")
            except (OSError, http.client.HTTPException) as error:
                return None, repr(error)
            finally:
                connection.close()

    def becomes(self, holds):
        """Whether a condition comes to hold before the deadline or the process's end."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and self.is_alive():
            if holds():
                return True
            # The admin port tells nobody when it changes; asking again a little later is all there is.
            time.sleep(0.02)
        return holds()


KEY = "real-api-key-5d1c7b"
ENVIRONMENT = {"PATH": os.environ["PATH"], "POSTERN_INTERCEPT": "1", "API_KEY": KEY}
