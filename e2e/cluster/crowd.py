"""Many namespaces, pods and policies on an API server without a node: the objects, and gateways that say what they should enforce."""

import asyncio
import http.client
import json
import os
import queue
import ssl
import threading
import time
from concurrent.futures import ThreadPoolExecutor

CONNECTIONS = 8
PATIENCE = 60
# API servers close connections that are idle for 90 s.
IDLE = 30
MERGE = "application/merge-patch+json"
MAPS = "/api/v1/configmaps?fieldSelector=metadata.name%3Dpostern-policy"
# Where the operator asks gateways.
ADMIN_PORT = 15090


class Client:
    """The API, asked as the cluster's administrator over connections that stay open."""

    def __init__(self, pki, address, port):
        self.address, self.port = address, port
        self.tls = ssl.create_default_context(cafile=pki / "ca.crt")
        self.tls.load_cert_chain(pki / "admin.crt", pki / "admin.key")
        self.idle = queue.SimpleQueue()

    def connection(self):
        return http.client.HTTPSConnection(self.address, self.port, timeout=PATIENCE, context=self.tls)

    def ask(self, method, path, body=None, kind="application/json"):
        """The answer, which must be a good one."""
        connection = self._taken()
        connection.request(method, path, None if body is None else json.dumps(body), {"content-type": kind})
        answer = connection.getresponse()
        text = answer.read().decode()
        self.idle.put((connection, time.monotonic()))
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {text[:300]}")
        return json.loads(text) if "json" in answer.headers["content-type"] else text

    def _taken(self):
        """A connection that the API server has not closed for want of use."""
        while True:
            try:
                connection, used = self.idle.get_nowait()
            except queue.Empty:
                return self.connection()
            if time.monotonic() - used < IDLE:
                return connection
            connection.close()

    def merge(self, path, body):
        return self.ask("PATCH", path, body, MERGE)

    def each(self, act, items):
        """Acts on every item, several at a time."""
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            return list(pool.map(act, items))


class Crowd:
    """Namespaces whose first one has a quarter of all pods; each pod has an address of its own on loopback."""

    def __init__(self, client, namespaces, pods, policies, cluster_policies):
        self.client = client
        self.namespaces = [f"team-{number:04}" for number in range(namespaces)]
        self.crowded, self.others = self.namespaces[0], self.namespaces[1:]
        crowd = pods // 4
        homes = [self.crowded] * crowd + [self.others[at % len(self.others)] for at in range(pods - crowd)]
        self.pods = [(home, f"agent-{at:05}", f"127.{1 + (at >> 16)}.{at >> 8 & 255}.{at & 255}") for at, home in enumerate(homes)]
        self.policies = [(self.namespaces[at % namespaces], f"policy-{at:05}") for at in range(policies)]
        self.cluster_policies = [f"everywhere-{at}" for at in range(cluster_policies)]

    def make(self):
        """All objects, as they would be without the operator."""
        self.client.each(self._namespace, self.namespaces)
        self.client.each(self._policy, self.policies)
        for name in self.cluster_policies:
            body = document("ClusterEgressPolicy", {"name": name}, spec(name, 20))
            self.client.ask("POST", "/apis/postern.dev/v1alpha1/clusteregresspolicies", body)
        self.client.each(self._pod, self.pods)

    def edit(self, namespace, word):
        """Changes the first policy of a namespace."""
        name = next(name for home, name in self.policies if home == namespace)
        self.client.merge(policies(namespace, name), {"spec": spec(word, 10)})

    def edit_everywhere(self, word):
        path = f"/apis/postern.dev/v1alpha1/clusteregresspolicies/{self.cluster_policies[0]}"
        self.client.merge(path, {"spec": spec(word, 20)})

    def stamps(self, namespace):
        """The revision on each pod of a namespace."""
        items = self.client.ask("GET", f"/api/v1/namespaces/{namespace}/pods?resourceVersion=0")["items"]
        return [pod["metadata"].get("annotations", {}).get("postern.dev/policy-revision") for pod in items]

    def _namespace(self, name):
        labels = {"postern.dev/injection": "enabled"}
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
        self.client.ask("POST", "/api/v1/namespaces", body)

    def _policy(self, place):
        namespace, name = place
        body = document("EgressPolicy", {"name": name, "namespace": namespace}, spec(name, 10))
        self.client.ask("POST", policies(namespace), body)

    def _pod(self, place):
        namespace, name, address = place
        labels = {"postern.dev/injected": "true", "app": "agent"}
        container = lambda name: {"name": name, "image": "agent:test"}
        ours = [container("postern-redirect"), container("postern-gateway")]
        spec = {"initContainers": ours, "containers": [container("agent")]}
        body = {"metadata": {"name": name, "namespace": namespace, "labels": labels}, "spec": spec}
        path = f"/api/v1/namespaces/{namespace}/pods"
        self.client.ask("POST", path, {"apiVersion": "v1", "kind": "Pod"} | body)
        status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}
        self.client.merge(f"{path}/{name}/status", {"status": status})


def policies(namespace, name=None):
    path = f"/apis/postern.dev/v1alpha1/namespaces/{namespace}/egresspolicies"
    return f"{path}/{name}" if name else path


def document(kind, metadata, said):
    return {"apiVersion": "postern.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": said}


def spec(word, hosts):
    named = [f"{word}-{at}.example.com" for at in range(hosts)]
    half = len(named) // 2
    destinations = [
        {"name": "inspected", "hosts": named[:half], "action": "Inspect"},
        {"name": "tunnelled", "hosts": named[half:], "action": "Tunnel"},
    ]
    return {"destinations": destinations}


class Maps:
    """Every namespace's ConfigMap, followed by a watch; `at` is when its revision last changed."""

    def __init__(self, client):
        self.revisions, self.at, self.changes = {}, {}, 0
        self.changed = threading.Condition()
        listed = client.ask("GET", MAPS)
        for item in listed["items"]:
            self._take(item)
        self.client, self.version = client, listed["metadata"]["resourceVersion"]
        threading.Thread(target=self._follow, daemon=True).start()

    def wait(self, holds, seconds):
        """Whether it comes to hold of these in time."""
        with self.changed:
            return self.changed.wait_for(lambda: holds(self), seconds)

    def _follow(self):
        connection = self.client.connection()
        connection.connect()
        connection.sock.settimeout(None)
        connection.request("GET", f"{MAPS}&watch=1&resourceVersion={self.version}")
        for line in connection.getresponse():
            self._take(json.loads(line)["object"])

    def _take(self, item):
        namespace, revision = item["metadata"].get("namespace"), item.get("data", {}).get("revision")
        with self.changed:
            if revision and self.revisions.get(namespace) != revision:
                self.revisions[namespace], self.at[namespace] = revision, time.monotonic()
                self.changes += 1
                self.changed.notify_all()


class Gateways:
    """Answers for all pods, by the address that is asked, that they enforce what their namespace's ConfigMap says."""

    def __init__(self, crowd, maps):
        self.homes = {address: namespace for namespace, _, address in crowd.pods}
        self.maps, self.asked = maps, 0
        started = threading.Event()
        threading.Thread(target=asyncio.run, args=(self._serve(started),), daemon=True).start()
        if not started.wait(PATIENCE):
            raise RuntimeError(f"port {ADMIN_PORT} of loopback cannot be served")

    async def _serve(self, started):
        server = await asyncio.start_server(self._answer, "0.0.0.0", ADMIN_PORT, backlog=1024)
        started.set()
        await server.serve_forever()

    async def _answer(self, reader, writer):
        try:
            await reader.readuntil(b"\r\n\r\n")
            namespace = self.homes.get(writer.get_extra_info("sockname")[0])
            revision = self.maps.revisions.get(namespace, "none")
            body = f'postern_policy_info{{revision="{revision}"}} 1\npostern_interception_proven 1\n'
            writer.write(f"HTTP/1.1 200 OK\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode())
            self.asked += 1
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass  # Who hung up wants no answer.
        finally:
            writer.close()


def usage(process):
    """CPU seconds that a process has used, and MiB that it has in memory (proc(5))."""
    with open(f"/proc/{process}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    with open(f"/proc/{process}/statm") as statm:
        pages = int(statm.read().split()[1])
    ticks = int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK"), pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)
