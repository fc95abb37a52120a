"""Everything that one backend is tested with: namespaces, authorities, upstream, plan and gateway."""

import json
import os
import shutil
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from agent import ANSWER, Agents
from capture import Capture
from gateway import PORTS, UID, Gateway
from outside import UPSTREAM_CA, Outside
from plan import Plan
from topology import UPSTREAM, Topology, run

HERE = Path(__file__).resolve().parent
STATIC = ["api", "plain", "git", "db"]
# Asked for at the upstream's resolver, as a name without a static address is.
NAMES = [*STATIC, "resolved"]


class Stage:
    """Starts everything in a directory, the gateway last; leaving it ends and removes what was started."""

    def __init__(self, postern, backend, directory):
        self.directory, self.backend = directory, backend
        self.postern, self.settings = directory / "postern", directory / "settings.yaml"
        # Where the agent, an ordinary user, may read it: the repository may stand in root's home.
        directory.chmod(0o755)
        shutil.copy(postern, self.postern)
        for programs in ("attacks", "twins"):
            shutil.copytree(HERE / programs, directory / programs)

    def __enter__(self):
        with ExitStack() as started:
            self.topology = started.enter_context(Topology())
            self._make_authorities()
            self._write_settings()
            self.outside = Outside(self.topology, self.directory / "leaf.pem", self.directory / "leaf-key.pem")
            self.capture = started.enter_context(Capture(self.topology, UID))
            self.agents = Agents(self.topology, self.directory)
            self.plan = Plan(self.topology, self.postern, self.settings, self.backend)
            self.plan.program()
            log = self.directory / "gateway.log"
            self.gateway = started.enter_context(Gateway(self.topology, self.postern, self.settings, log))
            self.gateway.start()
            self.started = started.pop_all()
        return self

    def __exit__(self, *_):
        self.started.close()

    def attempt(self, identity, program, *arguments, counts, patience=ANSWER):
        """What a program of `attacks/` saw, and the frames that left the pod meanwhile and that `counts` counts."""
        run = partial(self.agents.run, identity, f"attacks/{program}", *arguments, patience=patience)
        return self.capture.during(run, counts)

    def restore(self):
        """As every subject finds it, after one that broke off."""
        self.plan.program()
        if not self.gateway.is_alive():
            self.gateway.start()

    def _make_authorities(self):
        authority, key = self.directory / "upstream.pem", self.directory / "upstream-key.pem"
        run("openssl", "req", "-x509", "-out", authority, "-keyout", key, "-subj", f"/CN={UPSTREAM_CA}", *EC, *CA)
        names = ",".join(f"DNS:{name}.example.com" for name in NAMES)
        leaf = ["-CA", authority, "-CAkey", key, "-addext", f"subjectAltName={names}"]
        certificate, key = self.directory / "leaf.pem", self.directory / "leaf-key.pem"
        run("openssl", "req", "-x509", "-out", certificate, "-keyout", key, "-subj", "/CN=stand-in", *EC, *leaf, *LEAF)
        run(self.postern, "ca", "init", "--directory", self.directory / "ca")
        for made in ("ca", "ca/ca-key.pem"):
            os.chown(self.directory / made, UID, UID)
        roots = [(self.directory / name).read_text() for name in ("ca/ca-cert.pem", "upstream.pem")]
        (self.directory / "roots.pem").write_text("".join(roots))

    def _write_settings(self):
        state = self.directory / "state"
        state.mkdir()
        os.chown(state, UID, UID)
        shutil.copy(HERE / "policy.yaml", self.directory)
        self.settings.write_text(json.dumps({  # JSON is YAML.
            "listeners": {
                "transparent": {"port": PORTS["transparent"]},
                "dns": {"port": PORTS["dns"], "pool": "198.18.0.0/15"},
                # Where a careless user would have it: the plan alone keeps others away.
                "explicit": {"address": f"0.0.0.0:{PORTS['explicit']}"},
            },
            "admin": {"address": f"0.0.0.0:{PORTS['admin']}", "socket": "state/status.sock"},
            "interception": {"mode": "Required", "caCertificate": "ca/ca-cert.pem", "caKey": "ca/ca-key.pem"},
            "policy": {"path": "policy.yaml"},
            "upstream": {
                "hosts": {f"{name}.example.com": UPSTREAM[4] for name in STATIC},
                "roots": ["upstream.pem"],
            },
        }))


EC = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
CA = ["-addext", "keyUsage=critical,keyCertSign,cRLSign"]
LEAF = [
    *("-addext", "basicConstraints=critical,CA:FALSE"),
    *("-addext", "keyUsage=critical,digitalSignature"),
    *("-addext", "extendedKeyUsage=serverAuth"),
]
