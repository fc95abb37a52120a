"""The built gateway as the pod's sidecar: its own UID, no capabilities, killed and started as a test asks."""

import http.client
import subprocess

from agent import Identity
from gateway_process import GatewayProcess, metric
from waiting import PATIENCE

UID = 61234
ADMIN = 15090
PORTS = {"transparent": 15001, "explicit": 15002, "dns": 15053, "admin": ADMIN}
PROVEN = "postern_interception_proven"
KEY = "real-api-key-5d1c7b"


class Gateway(GatewayProcess):
    """The gateway in the pod's namespace, whose admin port is asked there."""

    def __init__(self, topology, postern, directory):
        owner = Identity("gateway", UID, ())
        super().__init__(postern, directory, lambda command: topology.command("pod", *owner.command(*command)), {"API_KEY": KEY})
        self.topology = topology

    def refused_start(self):
        """Exit status and standard error of a start that must fail."""
        done = subprocess.run(self.command(), env=self.environment, capture_output=True, text=True, timeout=PATIENCE, check=False)
        return done.returncode, done.stderr

    def kill(self):
        """SIGKILL: no socket is closed in good order."""
        self.process.kill()
        self.process.wait(PATIENCE)

    def socket(self, family, kind):
        """A socket in the pod that is the gateway's, as far as the kernel's rules can tell."""
        return self.topology.socket("pod", family, kind, owner=UID)

    def is_ready(self):
        return self.ask("/readyz")[0] == 200

    def proven(self):
        """The metric's value, or None where there is none."""
        return self.metric(PROVEN)

    def metric(self, name):
        """The sum over a metric's labels, or None."""
        return metric(self.ask("/metrics")[1], name)

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
