"""Everything that is looked at: API server, operator, a pod with its gateway, another gateway, Jaeger, Prometheus."""

import json
import os
import shutil

import api_server
import jaeger
import replicas
import servers
from agent import Agent
from authority import Authority
from commands import run
from pod import ADDRESSES, ADMIN, BESIDE, NAME, NODE_ADDRESS, UID, Gateway, Volumes, in_pod, unwire, wire
from processes import Processes
from prometheus import Prometheus
from upstream import Upstream
from waiting import becomes

KEY = "canary-of-a-real-key"
HOSTS = ["api.anthropic.com", "api.example.com", "forbidden.example.com", "tunnel.example.com"]
# Nobody listens there.
GONE = "gone.example.com"
OPERATOR = {"webhook": 8443, "admin": 8080}
PROXY = ("127.0.0.1", 15002)
OTHERS = "others"


class Stage:
    """Starts everything in a directory; leaving it ends what was started."""

    def __init__(self, postern, operator, directory):
        self.directory, self.operator = directory, operator
        self.postern, self.rounds = directory / "postern", 0
        # Where the gateway's user may read it: the repository may stand in root's home.
        shutil.copy(postern, self.postern)
        self.processes = Processes(directory)
        self.gateway = Gateway(NAME, self.processes)
        self.beside = Gateway(BESIDE, self.processes)

    def __enter__(self):
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in self.processes.names():
            self.processes.stop(name)
        unwire()

    def collector_dies(self):
        self.processes.kill("jaeger")

    def change_policy(self):
        """Edits the policy, and plays kubelet once the operator has stamped the pod; whether the gateway follows."""
        self.rounds += 1
        before = self.stamp()
        replicas.demand(*replicas.kubectl("apply", "-f", "-", given=policy(self.rounds)))
        if not becomes(lambda: self.stamp() != before):
            raise RuntimeError("the operator does not stamp the pod with the new revision")
        self.volumes.refresh()
        return becomes(lambda: self.gateway.metric("postern_policy_info", revision=self.stamp()) == 1)

    def stamp(self):
        matches = replicas.found("pod", NAME, replicas.AGENTS)["metadata"].get("annotations", {})
        return matches.get("postern.dev/policy-revision")

    def _start(self):
        wire()
        self.processes.start("jaeger", *jaeger.command(NODE_ADDRESS))
        outside = self.directory / "outside"
        outside.mkdir()
        names = [f"DNS:{name}" for name in HOSTS]
        leaf = Authority(outside, "upstream", "Stand-in Upstream CA").issue("leaf", "/CN=stand-in", names)
        self.upstream = Upstream(NODE_ADDRESS, *leaf)
        kubeconfig = api_server.start(self.directory, self.processes)
        os.environ |= {"KUBECONFIG": str(kubeconfig), "PATH": f"{servers.BIN}:{os.environ['PATH']}"}
        self._start_operator()
        self._start_pod()
        self._start_beside()
        self.prometheus = Prometheus(self.directory, self.processes)
        self._demand(lambda: jaeger.is_ready(NODE_ADDRESS), "jaeger")

    def _start_operator(self):
        operator = Replica()
        replicas.prepare(self.operator, NODE_ADDRESS, [operator])
        replicas.demand(*replicas.kubectl("create", "-f", "-", given=replicas.namespace(OTHERS, INJECTED)))
        settings = self.directory / "operator.json"
        shown = replicas.settings(operator.webhook, OPERATOR["admin"])
        shown["gateway"]["settings"] = json.dumps(self.settings())
        settings.write_text(json.dumps(shown))
        command = [self.operator, "run", "--config", settings]
        self.processes.start("operator", *command, environment=os.environ | {"POD_NAME": operator.name})
        self._demand(lambda: replicas.mutating() and replicas.validating(), "operator")
        self._demand(replicas.is_injected, "operator")
        for each in [credential(), policy(0), *contradictory()]:
            replicas.demand(*replicas.kubectl("apply", "-f", "-", given=each))

    def _start_pod(self):
        given = replicas.POD | {"metadata": {"name": NAME, "namespace": replicas.AGENTS}}
        given["spec"] = given["spec"] | {"nodeName": "node"}
        replicas.demand(*replicas.kubectl("create", "-f", "-", given=given))
        address = ADDRESSES[NAME]
        runs = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "hostIP": NODE_ADDRESS}
        patch = ["patch", "pod", NAME, "--subresource=status", "--type=merge", "-p", json.dumps({"status": runs})]
        replicas.demand(*replicas.kubectl("-n", replicas.AGENTS, *patch))
        self.volumes = Volumes(self.directory / "pod")
        self._demand(lambda: self.stamp() and self.volumes.are_there(), "operator")
        self.volumes.refresh()
        settings = self.directory / "pod/policy/settings"
        run(*in_pod(NAME, self.postern, "redirect", "--config", settings, "--uid", UID))
        self.gateway.start([self.postern, "gateway", "--config", settings], WORKLOAD | exports(jaeger.GRPC, "grpc"))
        self.agent = Agent(self.directory / "pod/trust/ca-bundle.pem")

    def _start_beside(self):
        """Another gateway of the namespace, with the same volumes, which is a proxy alone."""
        place = self.directory / BESIDE
        (place / "trust").mkdir(parents=True)
        for made in (place, place / "trust"):
            os.chown(made, UID, UID)
        shown = self.settings() | {"listeners": {"explicit": {"address": "%s:%s" % PROXY}}}
        shown["admin"] = shown["admin"] | {"socket": f"{place}/status.sock"}
        shown["trust"] = shown["trust"] | {"directory": f"{place}/trust"}
        settings = place / "settings"
        settings.write_text(json.dumps(shown))
        variables = WORKLOAD | {"POSTERN_POD": BESIDE} | exports(jaeger.HTTP, "http/protobuf")
        self.beside.start([self.postern, "gateway", "--config", settings], variables)
        self.proxied = Agent(place / "trust/ca-bundle.pem", PROXY)

    def settings(self):
        """The gateway's, as the chart writes them, with the places of this run."""
        place = f"{self.directory}/pod"
        variables = {"namespace": "NAMESPACE", "pod": "POD", "serviceAccount": "SERVICE_ACCOUNT", "node": "NODE"}
        hosts = dict.fromkeys(HOSTS, f"{NODE_ADDRESS}:443") | {GONE: f"{NODE_ADDRESS}:9"}
        return {
            "listeners": {"transparent": {}, "explicit": {}, "dns": {}},
            "admin": {"address": f"0.0.0.0:{ADMIN}", "socket": f"{place}/run/status.sock"},
            "interception": {"caCertificate": f"{place}/ca/ca-cert.pem", "caKey": f"{place}/ca/ca-key.pem"},
            "policy": {
                "path": f"{place}/policy",
                "labels": f"{place}/podinfo/labels",
                "annotations": f"{place}/podinfo/annotations",
                "workload": {key: {"fromEnv": f"POSTERN_{name}"} for key, name in variables.items()},
            },
            "upstream": {"roots": [f"{self.directory}/outside/upstream.crt"], "hosts": hosts},
            "credentials": {"directory": f"{place}/credentials"},
            "trust": {"directory": f"{place}/trust", "roots": f"{place}/ca/roots.pem"},
            "limits": {"requestBodyBytes": "64KiB"},
        }

    def _demand(self, holds, name):
        if not becomes(holds):
            raise RuntimeError(f"{name} does not come to where it should: {self.processes.log(name).read_text()[-2000:]}")


class Replica:
    """The operator's only replica, from which its Service's endpoints are made."""

    name, webhook = "postern-operator-0", OPERATOR["webhook"]


def policy(number):
    """Returns the agents' policy; each number is another revision."""
    matching = {"any": [{"param": "command", "operator": "Matches", "values": [r"rm\s+-rf\s+/"]}]}
    return {
        "apiVersion": "postern.dev/v1alpha1",
        "kind": "EgressPolicy",
        "metadata": {"name": "coding-agents", "namespace": replicas.AGENTS},
        "spec": {
            "destinations": [
                {"name": "anthropic", "hosts": ["api.anthropic.com"], "action": "Inspect"},
                {**{"name": "api", "hosts": ["api.example.com", GONE], "action": "Inspect"}, "endpoints": [{"methods": ["GET"], "path": "/open/**"}]},
                {"name": "tunnel", "hosts": ["tunnel.example.com"], "action": "Tunnel"},
                {"name": "forbidden", "hosts": ["forbidden.example.com"], "action": "Deny"},
                {"name": "number", "hosts": [f"of-{number}.example.com"], "action": "Tunnel"},
            ],
            "tools": [{"name": "no-force-remove", "kind": "Shell", "action": "Deny", "when": matching}],
            "credentials": [
                {**{"name": "anthropic", "hosts": ["api.anthropic.com"], "require": True}, "secretKeyRef": {"name": "llm", "key": "anthropic"}}
            ],
        },
    }


def contradictory():
    """Two policies that are right each by itself, so that the webhook admits them, and not together."""
    for provider in ("Anthropic", "Gemini"):
        destination = {"name": "models", "hosts": ["llm.example.com"], "action": "Inspect", "provider": provider}
        yield {
            "apiVersion": "postern.dev/v1alpha1",
            "kind": "EgressPolicy",
            "metadata": {"name": provider.lower(), "namespace": OTHERS},
            "spec": {"destinations": [destination]},
        }


def credential():
    metadata = {"name": "llm", "namespace": replicas.AGENTS}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"anthropic": KEY}}


def exports(port, protocol):
    """The variables that have a gateway export its spans, soon."""
    return {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{NODE_ADDRESS}:{port}", "OTEL_EXPORTER_OTLP_PROTOCOL": protocol, "OTEL_BSP_SCHEDULE_DELAY": "200"}


INJECTED = {"postern.dev/injection": "enabled"}
WORKLOAD = {"POSTERN_NAMESPACE": replicas.AGENTS, "POSTERN_POD": NAME, "POSTERN_SERVICE_ACCOUNT": "default", "POSTERN_NODE": "node"}
