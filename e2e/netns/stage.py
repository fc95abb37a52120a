"""Everything that one backend is tested with: namespaces, authorities, upstream, plan and gateway."""

import shutil
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from agent import ANSWER, Agents
from authority import Authority
from capture import Capture
from gateway import PORTS, UID, Gateway
from outside import UPSTREAM_CA, Outside
from plan import Plan
from topology import UPSTREAM, Topology

HERE = Path(__file__).resolve().parent
STATIC = ["api", "plain", "git", "db"]
# Asked for at the upstream's resolver, as a name without a static address is.
NAMES = [*STATIC, "resolved"]


class Stage:
    """Starts everything in a directory, the gateway last; leaving it ends and removes what was started."""

    def __init__(self, postern, backend, directory):
        # The gateway's user reads it there: the repository may stand in root's home.
        self.directory, self.backend, self.postern = directory, backend, shutil.copy(postern, directory / "postern")
        for programs in ("attacks", "twins"):
            shutil.copytree(HERE / programs, directory / programs)

    def __enter__(self):
        with ExitStack() as started:
            self.topology = started.enter_context(Topology())
            names = [f"DNS:{name}.example.com" for name in NAMES]
            upstream = Authority(self.directory, "upstream", UPSTREAM_CA)
            self.outside = Outside(self.topology, *upstream.issue("leaf", "/CN=stand-in", names, "serverAuth"))
            self.gateway = Gateway(self.topology, self.postern, self.directory)
            started.callback(self.gateway.stop)
            self._configure()
            self.capture = started.enter_context(Capture(self.topology, UID))
            self.agents = Agents(self.topology, self.directory)
            self.plan = Plan(self.topology, self.postern, self.gateway.settings, self.backend)
            self.plan.program()
            self.gateway.start()
            self.started = started.pop_all()
        return self

    def __exit__(self, *_):
        self.started.close()

    def attempt(self, identity, program, *arguments, counts, patience=ANSWER):
        """Runs a program of `attacks/`; returns what it saw, and the frames that left the pod meanwhile and satisfy `counts`."""
        run = partial(self.agents.run, identity, f"attacks/{program}", *arguments, patience=patience)
        return self.capture.during(run, counts)

    def restore(self):
        """Restores the state that every subject expects, after one that broke off."""
        self.plan.program()
        if not self.gateway.is_alive():
            self.gateway.start()

    def _configure(self):
        listeners = {
            "transparent": {"port": PORTS["transparent"]},
            "dns": {"port": PORTS["dns"], "pool": "198.18.0.0/15"},
            # Where a careless user would have it: the plan alone keeps others away.
            "explicit": {"address": f"0.0.0.0:{PORTS['explicit']}"},
        }
        hosts = {f"{name}.example.com": UPSTREAM[4] for name in STATIC}
        self.gateway.configure((HERE / "policy.yaml").read_text(), listeners, {"hosts": hosts}, f"0.0.0.0:{PORTS['admin']}")
        self.gateway.give_to(UID)
        roots = [(self.directory / name).read_text() for name in ("ca/ca-cert.pem", "upstream.crt")]
        (self.directory / "roots.pem").write_text("".join(roots))
