"""Two replicas of the operator outside a cluster, before a real API server: webhook, certificate, election, shutdown.

It needs a cluster that nobody else uses, without a node and without controllers: what it makes it removes.
"""

import base64
import http.client
import json
import os
import socket
import ssl
import subprocess
import urllib.request
from pathlib import Path

from guarded_pod import LIBRARY
from ports import reserved
from runner import OPERATOR
from steps import Step
from waiting import PATIENCE, becomes

EXECUTABLE = OPERATOR
GATEWAY = "postern-gateway"
SYSTEM, AGENTS, LATE = "postern-system", "agents", "late"
SERVICE = f"postern-webhook.{SYSTEM}.svc"
# For how long a replica that was told to stop goes on answering; it is told twice not to.
LINGERING = 300

CHART = Path(__file__).parents[2] / "charts" / "postern"
CORPUS = Path(__file__).parents[2] / "src/operator/injector/corpus/injected"
# Admission policies about new pods. Those about the operator's objects would refuse them to this test's user.
BACKSTOPS = [f"backstops/{name}.yaml" for name in ("containers", "drawn", "secrets", "shape")]
# One that a pod of the corpus names.
RUNTIME = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "nvidia"}, "handler": "nvidia"}
HOST_PATH, REPOSITORY, TAG = "/srv/models", "postern-gateway", "test"

POLICY = {
    "apiVersion": "postern.dev/v1alpha1",
    "kind": "EgressPolicy",
    "metadata": {"name": "coding-agents", "namespace": AGENTS},
    "spec": {"destinations": [{"name": "api", "hosts": ["api.example.com"], "action": "Inspect"}]},
}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "agent", "namespace": AGENTS},
    "spec": {"containers": [{"name": "agent", "image": "agent:test"}]},
}


class Replica:
    """A process of the operator with ports of its own."""

    def __init__(self, name, processes, directory, executable):
        self.name, self.processes, self.executable = name, processes, executable
        self.webhook, self.admin = reserved(), reserved()
        self.settings = directory / f"{name}.json"
        self.settings.write_text(json.dumps(settings(self.webhook, self.admin)))

    def start(self):
        environment = os.environ | {"POD_NAME": self.name}
        command = [self.executable, "run", "--config", self.settings]
        self.processes.start(self.name, *command, environment=environment)

    def ask(self, path):
        """Status and text of the admin port's answer, or (None, why)."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError as error:
            return None, repr(error)

    def is_ready(self):
        return self.ask("/readyz")[0] == 200

    def leads(self):
        return "postern_operator_leader 1" in (self.ask("/metrics")[1] or "").splitlines()

    def review(self, bundle, path="/pods/validate"):
        """Asks the webhook as an API server does to review a pod's deletion, and returns its answer."""
        tls = ssl.create_default_context(cadata=bundle)
        with socket.create_connection(("127.0.0.1", self.webhook), timeout=10) as plain:
            with tls.wrap_socket(plain, server_hostname=SERVICE) as secured:
                connection = http.client.HTTPConnection(SERVICE)
                connection.sock = secured
                connection.request("POST", path, json.dumps(deletion()), {"content-type": "application/json"})
                return json.loads(connection.getresponse().read())


def steps():
    yield Step("two replicas of the operator", serve)


def serve(stage, step):
    replicas = [Replica(name, stage.processes, stage.directory, EXECUTABLE) for name in ("first", "second")]
    try:
        settings_are_checked(step, stage.directory, EXECUTABLE)
        prepare(EXECUTABLE, own_address(), replicas)
        it_serves(step, replicas)
        pods_are_judged(step)
        backstops_admit_what_is_injected(step)
        policies_are_judged(step)
        pods_without_a_gateway_are_seen(step, replicas)
        a_gateway_that_ends_is_told(step, replicas)
        a_broken_certificate_is_replaced(step, replicas)
        survivor = a_killed_leader_is_replaced(step, replicas)
        it_stops_gently(step, survivor)
    finally:
        for replica in replicas:
            stage.processes.stop(replica.name)
            if not all(step.checks):
                print(f"--- {replica.name}\n{stage.processes.log(replica.name).read_text()[-4000:]}")
        clean()


def own_address():
    """This machine's address on its way out, since no Service may lead to loopback; nothing is sent there."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        asked.connect(("198.51.100.1", 9))
        return asked.getsockname()[0]


def settings_are_checked(step, directory, executable):
    good, bad = directory / "good.json", directory / "bad.yaml"
    good.write_text(json.dumps(settings(8443, 8080)))
    bad.write_text("namespace: postern-system\nserviceAcount: x\n")
    done = subprocess.run([executable, "run", "--config", good, "--check"], capture_output=True, text=True, check=False)
    step.check("good settings are good", done.returncode == 0, done.stdout + done.stderr)
    done = subprocess.run([executable, "run", "--config", bad, "--check"], capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    step.check("bad settings are told with their line", done.returncode == 1 and "bad.yaml:2:1" in said, said)


def it_serves(step, replicas):
    for replica in replicas:
        replica.start()
        ready = becomes(replica.is_ready, PATIENCE)
        step.check(f"{replica.name} is ready", ready, replica.ask("/readyz"))
    leading = becomes(lambda: [each.name for each in replicas if each.leads()], PATIENCE)
    step.check("one of them leads", len(leading) == 1, leading)
    bundles = becomes(lambda: all(bundle() for bundle in (mutating, validating)), PATIENCE)
    step.check("both configurations have a CA", bundles, (mutating()[:60], validating()[:60]))
    secret = found("secret", "postern-webhook-tls", SYSTEM)
    keys = sorted(secret["data"])
    kept = secret["type"] == "kubernetes.io/tls" and keys == ["ca.crt", "tls.crt", "tls.key"]
    step.check("the Secret is one of TLS and holds no key of a CA", kept, (secret["type"], keys))
    for replica in replicas:
        answer = replica.review(mutating())
        step.check(f"{replica.name} answers those who trust that CA", answer["response"]["allowed"], answer)
        listed = replica.ask("/metrics")[1]
        name = "postern_operator_webhook_certificate_not_after_timestamp_seconds"
        step.check(f"{replica.name} tells when its certificate ends", name in listed, listed[-400:])


def pods_are_judged(step):
    created = becomes(is_injected, PATIENCE) and kubectl("create", "-f", "-", given=POD)[0] == 0
    pod = found("pod", "agent", AGENTS) if created else {}
    names = [each["name"] for each in pod.get("spec", {}).get("initContainers", [])]
    step.check("a pod is injected", names[:2] == ["postern-redirect", "postern-gateway"], names)
    labels = pod.get("metadata", {}).get("labels", {})
    step.check("and labelled", labels.get("postern.dev/injected") == "true", labels)
    refused = POD | {"metadata": {"name": "loose", "namespace": AGENTS}, "spec": POD["spec"] | {"hostNetwork": True}}
    status, said = kubectl("create", "-f", "-", given=refused)
    step.check("a pod that would get past the gateway is refused", status != 0 and "Postern refuses Pod" in said, said)
    step.check("a dry run is answered the same", is_injected(), "dry")


def is_injected():
    """Whether the API server asks the webhooks for a pod that is not kept: it learns of them, and of the CAs that it
    finds them by, a little later than they are written."""
    dry = POD | {"metadata": {"name": "dry", "namespace": AGENTS}}
    status, said = kubectl("create", "--dry-run=server", "-o", "json", "-f", "-", given=dry)
    return status == 0 and "postern-gateway" in said


def backstops_admit_what_is_injected(step):
    """The admission policies refuse a pod as it is written, and admit it as the webhook makes it: each of the injector's."""
    demand(*kubectl("apply", "-f", "-", given=rendered(BACKSTOPS)))
    demand(*kubectl("apply", "-f", "-", given=RUNTIME))
    # The corpus has its name.
    kubectl("-n", AGENTS, "delete", "pod", "agent", "--force", "--grace-period=0")
    # Of a pod that nobody labelled no webhook is asked. Of several policies that refuse it the API server names any:
    # its container is held to what a guarded one's is, so that one refuses it.
    bare = {"name": "postern-bare", "image": "mine", "securityContext": LIBRARY | {"runAsUser": 1000}}
    bare = POD | {"metadata": {"name": "bare", "namespace": "default"}, "spec": {"containers": [bare]}}
    refused = lambda: kubectl("create", "--dry-run=server", "-f", "-", given=bare)
    holds = becomes(lambda: "'postern-shape'" in refused()[1], PATIENCE)
    step.check("the admission policies hold", holds, refused())
    for name in sorted(CORPUS.glob("*.yaml")):
        # Some have fields that no API server knows yet.
        asked = ("create", "--dry-run=server", "--validate=ignore", "-n", AGENTS, "-o", "json", "-f", name)
        status, said = kubectl(*asked)
        step.check(f"{name.stem} is injected, and admitted by the admission policies", status == 0 and GATEWAY in said, said[:400])
    chosen = json.loads(json.dumps(POD))
    chosen["metadata"] |= {"name": "dry", "labels": {"postern.dev/user-id": "drawn"}}
    context = {"securityContext": {"runAsUser": 61234}}
    args = ["redirect", "--uid", "61234", "--config", "/etc/postern/policy/settings", "--keep-names", "/run/postern"]
    chosen["spec"]["initContainers"] = [{"name": "postern-redirect", "image": "mine", "args": args}, {"name": GATEWAY, "image": "mine"} | context]
    status, said = kubectl("create", "--dry-run=server", "-o", "json", "-f", "-", given=chosen)
    drawn = json.loads(said)["spec"]["initContainers"][0]["args"][2] if status == 0 else said
    step.check("a UID that a pod's author chose is drawn anew", status == 0 and drawn != "61234", drawn)
    demand(*kubectl("delete", "-f", "-", given=rendered(BACKSTOPS)))
    demand(*kubectl("delete", "-f", "-", given=RUNTIME))
    # The pod that the steps behind this one are about.
    demand(*kubectl("create", "-f", "-", given=POD))


def policies_are_judged(step):
    status, said = kubectl("apply", "-f", "-", given=POLICY)
    step.check("a good policy is admitted", status == 0, said)
    # The schema knows no regular expressions: both are for the webhook to refuse.
    denied = {"kind": "Shell", "action": "Deny"}
    tools = [denied | {"name": name, "when": matching(pattern)} for name, pattern in (("a", "a("), ("b", "b["))]
    spec = POLICY["spec"] | {"tools": tools}
    bad = POLICY | {"metadata": {"name": "bad", "namespace": AGENTS}, "spec": spec}
    status, said = kubectl("create", "-f", "-", given=bad)
    paths = [f"spec.tools[{index}].when.any[0].values[0]" for index in range(2)]
    step.check("a bad one is refused with every path", status != 0 and all(path in said for path in paths), said)


def pods_without_a_gateway_are_seen(step, replicas):
    """Of a namespace that is labelled while pods are in it."""
    demand(*kubectl("create", "-f", "-", given=namespace(LATE)))
    for name in ("early", "done"):
        demand(*kubectl("create", "-f", "-", given=POD | {"metadata": {"name": name, "namespace": LATE}}))
    tell(LATE, "done", {"phase": "Succeeded"})
    demand(*kubectl("label", "namespace", LATE, "postern.dev/injection=enabled"))
    demand(*kubectl("create", "-f", "-", given=POLICY | {"metadata": {"name": "all", "namespace": LATE}}))
    status = lambda: found("egresspolicy", "all", LATE).get("status", {})
    reason = lambda: next((each["reason"] for each in status().get("conditions", []) if each["type"] == "Programmed"), None)
    step.check("a pod that was there before the label is in the status", becomes(lambda: reason() == "Unguarded", PATIENCE), status())
    listed = status().get("unguarded"), status().get("enforcing")
    step.check("by its name, and one that has ended is not", listed == ([f"{LATE}/early"], "0/1, 1 unguarded"), listed)
    columns = kubectl("get", "egresspolicies", "-n", LATE)[1]
    step.check("kubectl get shows it, and when that was looked at", "1 unguarded" in columns and "CHECKED" in columns, columns)
    listed = becomes(lambda: notes(LATE, "Unguarded"), PATIENCE)
    step.check("an Event on the pod says what to do", listed and "Start it anew" in listed[0], listed)
    line = f'postern_operator_unguarded_pods{{namespace="{LATE}"}} 1'
    step.check("it is counted", becomes(lambda: counted(replicas, line), PATIENCE), line)
    demand(*kubectl("label", "namespace", LATE, "postern.dev/unguarded=Delete"))
    there = lambda: kubectl("get", "pods", "-n", LATE, "-o", "name")[1].split()
    step.check("where the namespace asks for it, it is deleted, and it alone", becomes(lambda: there() == ["pod/done"], PATIENCE), there())
    ready = kubectl("wait", "--for=condition=Ready", "egresspolicy/all", "-n", LATE, f"--timeout={PATIENCE}s")
    step.check("then the policy is Ready", ready[0] == 0, ready)


def a_gateway_that_ends_is_told(step, replicas):
    """Of the pod that was injected; no kubelet is here, so that its words are written for it."""
    state = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s restarting failed container=postern-gateway"}}
    ended = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
    gateway = {"name": "postern-gateway", "image": "", "imageID": "", "ready": False, "restartCount": 1}
    tell(AGENTS, "agent", {"phase": "Running", "initContainerStatuses": [gateway | {"state": state, "lastState": ended}]})
    listed = becomes(lambda: notes(AGENTS, "GatewayBackOff"), PATIENCE)
    words = "(OOMKilled, exit code 137). Kubelet waits 10s"
    step.check("an Event says that kubelet waits before it starts a gateway again", listed and words in listed[0], listed)
    line = "postern_operator_gateway_back_offs_total 1"
    step.check("and it is counted", becomes(lambda: counted(replicas, line), PATIENCE), line)


def tell(namespace, pod, status):
    demand(*kubectl("patch", "pod", pod, "-n", namespace, "--subresource=status", "--type=merge", "-p", json.dumps({"status": status})))


def notes(namespace, reason):
    """Returns the messages of the Events with this reason."""
    events = json.loads(kubectl("get", "events", "-n", namespace, "-o", "json")[1])["items"]
    return [each["message"] for each in events if (each["involvedObject"]["kind"], each["reason"]) == ("Pod", reason)]


def counted(replicas, line):
    return any(line in (replica.ask("/metrics")[1] or "").splitlines() for replica in replicas)


def a_broken_certificate_is_replaced(step, replicas):
    before = served(replicas[0])
    garbage = json.dumps({"data": {"tls.key": base64.b64encode(b"garbage").decode()}})
    kubectl("-n", SYSTEM, "patch", "secret", "postern-webhook-tls", "--type=merge", "-p", garbage)
    replaced = becomes(lambda: all(served(replica) not in ("", before) for replica in replicas), PATIENCE)
    step.check("a broken certificate is replaced, and both serve the new one", replaced, list(map(served, replicas)))
    # What cannot be served is replaced at once, and published after that.
    trusted = lambda: mutating().count("BEGIN CERTIFICATE")
    step.check("the CA of what was served stays trusted", becomes(lambda: trusted() == 2, PATIENCE), trusted())
    step.check("pods are still created", becomes(is_injected, PATIENCE), served(replicas[0])[:60])


def a_killed_leader_is_replaced(step, replicas):
    leader = becomes(lambda: next((replica for replica in replicas if replica.leads()), None), PATIENCE)
    survivor = next(replica for replica in replicas if replica is not leader)
    leader.processes.kill(leader.name)
    kubectl("-n", SYSTEM, "delete", "endpointslice", leader.name)
    answer = survivor.review(mutating())
    step.check("the other replica answers meanwhile", answer["response"]["allowed"], answer)
    leads = becomes(survivor.leads, PATIENCE)
    step.check("and leads once the Lease has run out", leads, holder())
    step.check("pods are created by its webhook", becomes(is_injected, PATIENCE), survivor.ask("/metrics")[1][-300:])
    return survivor


def it_stops_gently(step, replica):
    trusted, process = mutating(), replica.processes.children[replica.name]
    process.terminate()
    said = becomes(lambda: refusal(replica), PATIENCE)
    answer = replica.review(trusted)
    step.check("told to stop, it is not ready, and says why", said and "stopping" in said, said)
    step.check("and answers on while it is still asked", answer["response"]["allowed"], answer)
    # Whoever tells it twice does not want to wait.
    process.terminate()
    process.wait(PATIENCE)
    step.check("it ends with 0", process.returncode == 0, process.returncode)
    step.check("the Lease is nobody's", holder() is None, holder())


def refusal(replica):
    """Why it is not ready, or nothing where it is."""
    status, said = replica.ask("/readyz")
    return said if status == 503 else ""


def prepare(executable, address, replicas):
    clean()
    demand(*kubectl("create", "-f", "-", given=namespace(SYSTEM)))
    demand(*kubectl("create", "-f", "-", given=namespace(AGENTS, {"postern.dev/injection": "enabled"})))
    crds = subprocess.run([executable, "crds"], capture_output=True, text=True, check=True).stdout
    demand(*kubectl("apply", "-f", "-", given=crds))
    demand(*kubectl("wait", "--for=condition=Established", "crd/egresspolicies.postern.dev", f"--timeout={PATIENCE}s"))
    port = {"name": "webhook", "port": 443, "protocol": "TCP"}
    service = {"metadata": {"name": "postern-webhook", "namespace": SYSTEM}, "spec": {"ports": [port]}}
    demand(*kubectl("create", "-f", "-", given={"apiVersion": "v1", "kind": "Service"} | service))
    for replica in replicas:
        demand(*kubectl("create", "-f", "-", given=endpoint(replica, address)))
    demand(*kubectl("apply", "-f", "-", given=rendered(["webhook/mutating.yaml", "webhook/validating.yaml"])))


def rendered(templates):
    """Parts of the chart, for the operator's settings here."""
    shown = [option for template in templates for option in ("--show-only", f"templates/{template}")]
    values = f"gateway.image.repository={REPOSITORY},gateway.image.tag={TAG},injection.hostPaths={{{HOST_PATH}}}"
    command = ["helm", "template", "postern", CHART, "--namespace", SYSTEM, "--set", values, *shown]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def clean():
    for configuration in ("mutatingwebhookconfiguration", "validatingwebhookconfiguration"):
        kubectl("delete", configuration, "postern", "--ignore-not-found")
    kubectl("delete", "--ignore-not-found", "-f", "-", given=rendered(BACKSTOPS))
    for crd in ("egresspolicies", "clusteregresspolicies"):
        kubectl("delete", "crd", f"{crd}.postern.dev", "--ignore-not-found")
    for name in (SYSTEM, AGENTS, LATE):
        for kind in ("pod", "service", "endpointslice", "secret", "configmap", "lease"):
            kubectl("-n", name, "delete", kind, "--all", "--force", "--grace-period=0")
        kubectl("delete", "namespace", name, "--ignore-not-found", "--wait=false")
        # Where nobody runs the controllers, a namespace ends only so.
        kubectl("replace", "--raw", f"/api/v1/namespaces/{name}/finalize", "-f", "-", given=namespace(name))


def namespace(name, labels=None):
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels or {}}}


def endpoint(replica, address):
    labels = {"kubernetes.io/service-name": "postern-webhook"}
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": replica.name, "namespace": SYSTEM, "labels": labels},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
        "ports": [{"name": "webhook", "port": replica.webhook, "protocol": "TCP"}],
    }


def settings(port, admin):
    gateway = "policy: {path: /etc/postern/policy, labels: /etc/podinfo/labels}\nledger: {path: /var/lib/postern/ledger.db, maxBytes: 256MiB}"
    return {
        "namespace": SYSTEM,
        "serviceAccount": "postern-operator",
        "webhook": {"port": port, "drain": f"{LINGERING}s"},
        "admin": {"port": admin},
        "gateway": {"image": f"{REPOSITORY}:{TAG}", "settings": gateway},
        "injection": {"hostPaths": [HOST_PATH]},
    }


def matching(pattern):
    return {"any": [{"param": "command", "operator": "Matches", "values": [pattern]}]}


def deletion():
    request = {
        "uid": "1",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "name": "agent",
        "namespace": AGENTS,
        "operation": "DELETE",
        "userInfo": {},
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def mutating():
    return bundle("mutatingwebhookconfiguration")


def validating():
    return bundle("validatingwebhookconfiguration")


def bundle(kind):
    """The CAs of all webhooks of a configuration, which are the same; none where one has none."""
    bundles = {each["clientConfig"].get("caBundle", "") for each in found(kind, "postern")["webhooks"]}
    return base64.b64decode(bundles.pop()).decode() if len(bundles) == 1 else ""


def holder():
    return found("lease", "postern-operator", SYSTEM).get("spec", {}).get("holderIdentity")


def served(replica):
    """The certificate that a replica presents, in PEM."""
    try:
        return ssl.get_server_certificate(("127.0.0.1", replica.webhook), timeout=5)
    except OSError:
        return ""


def found(kind, name, namespace=None):
    where = ["-n", namespace] if namespace else []
    status, said = kubectl(*where, "get", kind, name, "-o", "json")
    if status != 0:
        raise RuntimeError(said)
    return json.loads(said)


def kubectl(*arguments, given=None):
    """Status, and standard output or else what went wrong."""
    given = given if given is None or isinstance(given, str) else json.dumps(given)
    command = ["kubectl", *arguments]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout if done.returncode == 0 else done.stderr


def demand(status, said):
    if status != 0:
        raise RuntimeError(said)
