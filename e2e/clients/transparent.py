"""The transparent way: clients are told of an authority and of nothing else, in a room whose only way out is the gateway."""

import re
from contextlib import contextmanager

from room import OUTSIDE, Room
from stage import MAIL_HOST, PLAIN_HOST, POLICY, TLS_HOSTS

UID = 61234
# What a pod's containers may keep; the redirect stands on the absence of all others.
KEPT = ["chown", "dac_override", "fowner", "kill", "net_bind_service"]
SSH_HOST = "ssh.example.com"


class Transparent:
    """The gateway is inside, as a user of its own; the upstreams are outside, on their protocols' own ports."""

    AGENTS = ""
    UPSTREAM, ADMIN = ["::", 443, 80, 110], "0.0.0.0:15090"
    # The words of those who asked a resolver and were told that there is no such name; a resolver that is silent has others.
    UNNAMED = "unnamed host: NXDOMAIN", re.compile("not known|Could not resolve host|ENOTFOUND|no such host|UnresolvedAddress")

    def __init__(self, families=(4, 6)):
        self.families, self.room = families, Room(families)

    def __str__(self):
        return f"transparent, over {' and '.join(f'IPv{family}' for family in self.families)}"

    def __enter__(self):
        self.room.__enter__()
        return self

    def __exit__(self, *_):
        self.room.__exit__()

    def reach(self, tls, plain, mail):
        """Names over every family: what is dialled by IPv4 inside may go on by IPv6 outside."""
        first, v6 = OUTSIDE[self.families[0]], f"[{OUTSIDE[6]}]"
        first = first if self.families[0] == 4 else v6
        others = {"git.example.com": f"{v6}:{tls}", PLAIN_HOST: f"{v6}:{plain}", MAIL_HOST: f"{first}:{mail}", SSH_HOST: f"{v6}:22"}
        return {"hosts": dict.fromkeys(TLS_HOSTS, f"{first}:{tls}") | others}

    def listeners(self, _stage):
        return {"transparent": {"port": 15001}, "dns": {"port": 15053}}

    def prepare(self, stage):
        """Gives the gateway's user what it reads and writes, then shuts the room."""
        stage.gateway.give_to(UID)
        stage.run(*self.room.inside(stage.gateway.postern, "redirect", "--uid", UID, "--config", stage.gateway.settings))
        self.room.begin()

    def upstream(self, command):
        return self.room.outside(*command)

    def gateway(self, command):
        """A command of the only user who gets out."""
        owner = [f"--reuid={UID}", f"--regid={UID}", "--clear-groups"]
        return self.room.inside("setpriv", *owner, *without_capabilities(), *command)

    def client(self, command):
        return self.room.inside("setpriv", *without_capabilities(KEPT), *command)

    def variables(self, _stage):
        return {}

    def agent(self, stage, provider):
        return Unconfigured(stage, {provider.variable: provider.placeholder, "IS_SANDBOX": "1"})

    def s_client(self, _stage):
        return []


def without_capabilities(kept=()):
    """Options of setpriv by which nothing that is started gains more than `kept`."""
    names = ",".join(["-all", *(f"+{name}" for name in kept)])
    return [f"--{each}={names}" for each in ("bounding-set", "inh-caps", "ambient-caps")] + ["--no-new-privs"]


class Unconfigured:
    """A command inside, whose environment holds a placeholder."""

    def __init__(self, stage, placeholders):
        self.stage, self.environment = stage, stage.environment() | placeholders

    def __call__(self, *command):
        return self.stage.output(command, self.environment, cwd=self.environment["HOME"])

    @contextmanager
    def with_policy(self, more):
        """Yields the same command while these documents are in force too."""
        policy = POLICY.read_text()
        self.stage.gateway.apply(policy + more)
        try:
            yield self
        finally:
            self.stage.gateway.apply(policy)
