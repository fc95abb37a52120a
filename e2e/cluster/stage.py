"""Everything that the steps meet: the cluster, what stands outside it, images, and the means to look at all of it."""

import json
import sys
import time
from pathlib import Path

import images
import manifests
import servers
from authority import Authority
from chart import Chart
from commands import tried
from namespaces import within
from network import NODE, OUTSIDE, Wire
from pods import Pod
from servers import executable
from times import Times
from waiting import PATIENCE, becomes

from cluster import NODE_NAME, RUN, Cluster

HERE = Path(__file__).resolve().parent
UPSTREAM_CA = "Stand-in Upstream CA"
NAMES = [manifests.ALLOWED, manifests.FORBIDDEN, manifests.UNNAMED, manifests.LATER, manifests.LLM, "*.example.com"]


class Stage:
    """Brings everything up; leaving it removes everything, unless it is to be kept for a next run."""

    def __init__(self, keep, _directory):
        self.keep, self.cluster, self.times = keep, Cluster(), Times()
        self.log, self.wire, self.chart = RUN / "outside.jsonl", Wire(), Chart(self)

    def __enter__(self):
        try:
            self._prepare()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if not self.keep:
            self.cluster.down()

    @property
    def api(self):
        return self.cluster.api

    def kubectl(self, *arguments, **options):
        """Status and output of kubectl as the cluster's administrator."""
        return tried(*within(NODE, executable("kubectl"), "--kubeconfig", self.cluster.kubeconfig, *arguments), **options)

    def apply(self, *objects):
        """Status and output of `kubectl apply`."""
        listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        return self.kubectl("apply", "-f", "-", input=json.dumps(listed))

    def create(self, *objects):
        """Applies, and fails unless the API server accepts."""
        status, answer = self.apply(*objects)
        if status:
            raise RuntimeError(f"kubectl apply: {answer}")

    def create_namespace(self, *namespaces):
        """Namespaces in which pods can be made: their service accounts come a moment later."""
        self.create(*namespaces)
        accounts = [f"/api/v1/namespaces/{each['metadata']['name']}/serviceaccounts/default" for each in namespaces]
        if not becomes(lambda: all(map(self.api.exists, accounts)), PATIENCE):
            raise RuntimeError(f"nobody makes {', '.join(accounts)}")

    def delete(self, kind, name, namespace=None, wait=True):
        where = ["-n", namespace] if namespace else []
        return self.kubectl("delete", kind, name, *where, f"--wait={json.dumps(wait)}", "--ignore-not-found", f"--timeout={PATIENCE}s")

    def pod(self, name, namespace=manifests.NAMESPACE):
        return Pod(self, name, namespace)

    def start(self, pod):
        """A pod that is created and becomes Ready."""
        self.create(pod)
        return self.pod(pod["metadata"]["name"], pod["metadata"]["namespace"]).demand_ready()

    def pods_of(self, namespace, labels=""):
        return [self.pod(each["metadata"]["name"], namespace) for each in self.api.items(f"/api/v1/namespaces/{namespace}/pods", labels)]

    def events_of(self, namespace):
        """The messages of a namespace's Events."""
        return [f"{each['reason']}: {each.get('message', '')}" for each in self.api.items(f"/api/v1/namespaces/{namespace}/events")]

    def why_waiting(self, namespace):
        """What keeps pods from becoming Ready: conditions of the node, then the namespace's Events."""
        node = self.api.take(f"/api/v1/nodes/{NODE_NAME}")["status"]["conditions"]
        return [*(f"node {each['type']}={each['status']}: {each.get('message', '')}" for each in node), *self.events_of(namespace)]

    def policy(self, name="coding-agents", namespace=manifests.NAMESPACE):
        return self.api.take(f"/apis/postern.dev/v1alpha1/namespaces/{namespace}/egresspolicies/{name}")

    def condition(self, kind, name="coding-agents", namespace=manifests.NAMESPACE):
        """A condition of a policy that speaks of its newest generation, or an empty one."""
        policy = self.policy(name, namespace)
        conditions = policy.get("status", {}).get("conditions", [])
        newest = policy["metadata"]["generation"]
        return next((each for each in conditions if each["type"] == kind and each.get("observedGeneration", newest) == newest), {})

    def mark(self):
        """A place in the log of what stands outside, for `seen_since`."""
        return self.log.stat().st_size

    def seen_since(self, mark, **wanted):
        with self.log.open() as log:
            log.seek(mark)
            lines = [json.loads(line) for line in log if line.endswith("\n")]
        return [line for line in lines if all(line.get(name) == value for name, value in wanted.items())]

    def measured(self, holds, patience=PATIENCE):
        """Seconds until a condition held, or None where it did not within a generous deadline."""
        started = time.monotonic()
        return time.monotonic() - started if becomes(holds, patience, 0.05) else None

    def upstream_root(self):
        return (RUN / "outside/upstream.crt").read_text()

    def _prepare(self):
        prepared = {
            "Kubernetes' servers are built": servers.build,
            "the agent's image is made": images.agent,
            "Postern's images are made": images.postern,
            "the node is Ready": self.cluster.up,
        }
        for what, prepare in prepared.items():
            started = time.monotonic()
            prepare()
            self.times.note(what, time.monotonic() - started)
            print(f"{what}: {time.monotonic() - started:.0f} s", flush=True)
        self._start_outside()
        for archive in (images.agent(), *images.postern_archives()):
            self.cluster.load(archive)

    def _start_outside(self):
        directory = RUN / "outside"
        directory.mkdir(exist_ok=True)
        self.log.touch()
        names = [f"DNS:{name}" for name in NAMES]
        leaf = Authority(directory, "upstream", UPSTREAM_CA).issue("leaf", "/CN=stand-in", names)
        processes = self.cluster.processes
        processes.start("outside", *within(OUTSIDE, sys.executable, HERE.parent / "run.py", "cluster/outside", *leaf, self.log))
        if not becomes(lambda: "ready" in processes.log("outside").read_text(), PATIENCE):
            raise RuntimeError(f"what stands outside does not start: {processes.log('outside').read_text()}")
