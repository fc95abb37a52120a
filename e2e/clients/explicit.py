"""The explicit way: clients are told of a proxy with a password, by the variables that they read, and by `postern run`."""

import re
from contextlib import contextmanager

from commands import output
from stage import HERE, PLAIN_HOST, TLS_HOSTS

LOGIN = "agent:door-password-19"


class Explicit:
    """Everything stands on one loopback, on ports that the system chose."""

    AGENTS = "postern run -- "
    UPSTREAM, ADMIN = ["127.0.0.1", 0, 0, 0], "127.0.0.1:0"
    # A client shows the status, or the reason phrase alone, when no rule names the host.
    UNNAMED = "unnamed host: CONNECT 403", re.compile("403|Blocked by policy")

    def __str__(self):
        return "explicit"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def reach(self, tls, plain, _mail):
        self.upstream_proxy = f"http://127.0.0.1:{plain}"
        hosts = dict.fromkeys(TLS_HOSTS, f"127.0.0.1:{tls}") | {PLAIN_HOST: f"127.0.0.1:{plain}"}
        return {"hosts": hosts, "allowAddresses": ["127.0.0.0/8"]}

    def listeners(self, stage):
        (stage.directory / "password").write_text(LOGIN.split(":")[1])
        return {"explicit": {"address": "127.0.0.1:0", "passwordFile": "password"}}

    def prepare(self, stage):
        pass

    def upstream(self, command):
        return command

    gateway = client = upstream

    def variables(self, stage):
        proxy = f"http://{LOGIN}@{stage.gateway.address}"
        return dict.fromkeys(["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"], proxy) | {"NODE_USE_ENV_PROXY": "1"}

    def agent(self, stage, provider):
        return PosternRun(stage, HERE / "agents.yaml", {provider.variable: provider.key, "IS_SANDBOX": "1"})

    def s_client(self, stage):
        """Returns the options of openssl s_client, which reads no proxy variable."""
        user, password = LOGIN.split(":")
        return ["-proxy", stage.gateway.address, "-proxy_user", user, "-proxy_pass", f"pass:{password}"]


class PosternRun:
    """`postern run` for a user who has `keys`, and the stand-in as the proxy and the authority of their network."""

    def __init__(self, stage, policy, keys):
        self.stage, self.policy, self.keys = stage, policy, keys
        way = {"HTTPS_PROXY": stage.way.upstream_proxy, "SSL_CERT_FILE": str(stage.roots("upstream"))}
        self.environment = stage.bare() | way | keys

    def __call__(self, *command):
        """Status, standard output and standard error of a command under `postern run`."""
        run = [self.stage.tools.postern, "run", "--policy", self.policy, "--", *command]
        return output(run, env=self.environment, cwd=self.environment["HOME"])

    @contextmanager
    def with_policy(self, more):
        """Another run, under these documents too."""
        policy = self.stage.directory / "more.yaml"
        policy.write_text(self.policy.read_text() + more)
        yield PosternRun(self.stage, policy, self.keys)
