"""Attacks of agents and of a namespace's users on the redirect and the gateway."""

import json

import images
import manifests
import servers
from install import CODER
from manifests import ALLOWED, OTHER
from manifests import NAMESPACE as AGENTS
from network import ELSEWHERE, UPSTREAM
from outside import INTACT
from pods import GATEWAY, REDIRECT
from steps import Step
from traffic import CONTAINERS, nothing_left, refused
from waiting import PATIENCE, becomes

SERVICE_ACCOUNT = f"system:serviceaccount:{AGENTS}:agent"
# A user of the namespace, with all that its ClusterRole `admin` gives.
USER = "somebody"
# The first Kubernetes whose containers can have all of their pod started again (KEP-5532).
RESTARTING = (1, 36)
# An agent that ends once, after it has written what its pod's containers resolve names by.
WRITE_AND_RESTART = f"""
if [ ! -e /state/wrote ]; then
  echo nameserver {ELSEWHERE[4]} > /etc/resolv.conf
  touch /state/wrote
  exit 42
fi
{manifests.IDLE}
"""
OWNED = ["configmap/postern-policy", "secret/postern-ca", "secret/postern-credentials"]


def steps():
    yield Step("A9 A10 H7 an agent attacks from its container", attacked)
    yield Step("B1 an agent writes the files by which names are resolved", rewrites_names)
    if servers.version() >= RESTARTING:
        yield Step("B1 an agent writes them and has all containers started again", restarts_all)
    yield Step("A23 an image of the gateway's user", gateways_user)
    yield Step("A12 pods that the wall could not hold", refused_pods)
    yield Step("H1 a pod opts out", opts_out)
    yield Step("H6 who may write", writers)
    yield Step("H14 pods are changed, copied and entered", entered)
    yield Step("Pod Security", pod_security)


def attacked(stage, step):
    pod, mark = stage.pod(CODER), stage.mark()
    stage.wire.clear()
    uid = pod.uid()
    for container in CONTAINERS:
        answer = pod.program("escape.py", uid, container=container)
        for attempt, outcome in answer.get("attempts", {"it runs": None}).items():
            step.check(f"{container}: {attempt} fails", outcome is not None, outcome or answer)
        step.check(f"{container}: no file of the gateway's is in sight", answer.get("files") == "none", answer.get("files"))
    step.check("the gateway still proves interception", pod.metric("postern_interception_proven") == 1, pod.ask("/readyz"))
    rules = pod.in_network("nft", "list", "table", "inet", "postern")
    step.check("the redirect is as it was", "redirect" in rules, f"{rules.count('counter')} counters")
    nothing_left(stage, step, pod, mark)


def rewrites_names(stage, step):
    """A pod's containers share them, and root writes them; the gateway has its own."""
    pod, mark = stage.start(manifests.idle("resolver")), stage.mark()
    stage.wire.clear()
    wrong = f"{ELSEWHERE[4]} {ALLOWED}"
    write = f"echo {wrong} >> /etc/hosts; echo nameserver {ELSEWHERE[4]} > /etc/resolv.conf; cat /etc/hosts"
    answer = pod.execute("sh", "-c", write)[1]
    step.check("the agent writes what its containers share", wrong in answer, answer)
    goes_where_names_lead(stage, step, pod, mark)
    stage.delete("pod", "resolver", AGENTS, wait=False)


def goes_where_names_lead(stage, step, pod, mark):
    """The gateway asks and dials nobody whom the agent wrote."""
    for kind in ("http", "https"):
        answer = pod.probe({"kind": kind, "host": ALLOWED, "address": UPSTREAM[4]})
        step.check(f"{kind}: its gateway goes where the name leads", answer.get("body") == INTACT, answer)
    opened = stage.wire.opened(*pod.addresses())
    there = [flow for flow in opened if ELSEWHERE[4] in flow] + stage.seen_since(mark, kind="reached")
    step.check("nothing goes where the agent wrote", not there, opened)


def restarts_all(stage, step):
    """Init containers run again in the same sandbox, after agents have."""
    rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}
    state = {"volumeMounts": [{"name": "state", "mountPath": "/state"}]}
    rules = {"restartPolicy": "Never", "restartPolicyRules": [rule]}
    containers = [manifests.container("agent", WRITE_AND_RESTART, **rules, **state)]
    volumes = [{"name": "state", "emptyDir": {}}]
    stage.create(manifests.agent("restarted", containers=containers, volumes=volumes))
    pod = stage.pod("restarted")
    wrote = (0, f"nameserver {ELSEWHERE[4]}\n")
    again = becomes(lambda: pod.is_ready() and pod.execute("cat", "/etc/resolv.conf") == wrote, PATIENCE)
    step.check("it runs again, with the file that it wrote", again, pod.execute("cat", "/etc/resolv.conf"))
    runs = {name: pod.status_of(name)["restartCount"] for name in (REDIRECT, GATEWAY)}
    step.check("and so do the redirect and the gateway", all(runs.values()), runs)
    mark = stage.mark()
    stage.wire.clear()
    goes_where_names_lead(stage, step, pod, mark)
    stage.delete("pod", "restarted", AGENTS, wait=False)


def gateways_user(stage, step):
    """The UID is drawn for each pod: an image that has the one of yesterday is nobody's exception."""
    uid, name = stage.pod(CODER).uid(), "localhost/yesterday:e2e"
    stage.cluster.load(images.agent_as(name, f"{uid}:{uid}"))
    container = manifests.container("agent", manifests.IDLE) | {"image": name}
    pod, mark = stage.start(manifests.agent("yesterday", containers=[container])), stage.mark()
    stage.wire.clear()
    answer = pod.execute("id", "-u")[1].strip()
    step.check("the container runs as yesterday's UID, the gateway does not", answer == str(uid) != str(pod.uid()), (answer, pod.uid()))
    for address in ELSEWHERE.values():
        answer = pod.probe({"kind": "tcp", "address": address, "port": 443})
        step.check(f"TCP to {address} is refused", refused(answer), answer)
    nothing_left(stage, step, pod, mark)
    stage.delete("pod", "yesterday", AGENTS, wait=False)


def refused_pods(stage, step):
    def with_container(**more):
        return manifests.agent("refused", containers=[manifests.container("agent", manifests.IDLE, **more)])

    def capable(capability):
        return with_container(securityContext={"capabilities": {"add": [capability]}})

    host = {"name": "host", "hostPath": {"path": "/run"}}
    theirs = {"name": "theirs", "secret": {"secretName": "postern-ca"}}
    mounted = {"volumeMounts": [{"name": "theirs", "mountPath": "/ca"}]}
    pods = {
        "hostNetwork": manifests.agent("refused", hostNetwork=True),
        "hostPID": manifests.agent("refused", hostPID=True),
        "hostIPC": manifests.agent("refused", hostIPC=True),
        "shareProcessNamespace": manifests.agent("refused", shareProcessNamespace=True),
        "privileged": with_container(securityContext={"privileged": True}),
        **{capability: capable(capability) for capability in ("NET_ADMIN", "NET_RAW", "SYS_ADMIN", "SYS_PTRACE", "SETUID", "SETGID")},
        "Unconfined seccomp": with_container(securityContext={"seccompProfile": {"type": "Unconfined"}}),
        "hostPath": manifests.agent("refused", volumes=[host]),
        "a container with the gateway's name": manifests.agent("refused", containers=[manifests.container(GATEWAY, manifests.IDLE)]),
        "the CA's Secret": manifests.agent("refused", containers=[manifests.container("agent", manifests.IDLE, **mounted)], volumes=[theirs]),
        "the CA's Secret, elsewhere": manifests.agent(
            "refused", OTHER, containers=[manifests.container("agent", manifests.IDLE, **mounted)], volumes=[theirs]
        ),
        "A18 Istio's sidecar": manifests.agent("refused", containers=[manifests.container("istio-proxy", manifests.IDLE)]),
        "windows": manifests.agent("refused", os={"name": "windows"}),
    }
    for words, pod in pods.items():
        status, answer = stage.apply(pod)
        denied = "denied the request" in answer or "denied request" in answer
        step.check(f"{words}: refused by Postern", status != 0 and denied, answer)
        if status == 0:
            stage.delete("pod", "refused", pod["metadata"]["namespace"])


def opts_out(stage, step):
    labels, variables = ({"postern.dev/inject": "false"}, [{"name": "SSL_CERT_FILE", "value": "/etc/ssl/certs/ca-certificates.crt"}])
    containers = [manifests.container("agent", manifests.IDLE, env=variables)]
    pod, mark = (stage.start(manifests.agent("opted-out", labels=labels, annotations=dict(labels), containers=containers)), stage.mark())
    stage.wire.clear()
    names = [each["name"] for each in pod.object()["spec"].get("initContainers", [])]
    step.check("it is injected all the same", GATEWAY in names, names)
    answer = pod.probe({"kind": "tcp", "address": ELSEWHERE[4], "port": 443})
    step.check("what nobody names is refused", refused(answer), answer)
    nothing_left(stage, step, pod, mark)
    status, answer = stage.kubectl("label", "pod", "opted-out", "-n", AGENTS, "postern.dev/injected-", "--overwrite")
    step.check("its label cannot be taken away, or is put back", status != 0 or "postern.dev/injected" in pod.object()["metadata"]["labels"], answer)
    stage.delete("pod", "opted-out", AGENTS, wait=False)


def writers(stage, step):
    for resource in ("configmaps", "secrets", "egresspolicies.postern.dev", "pods", "pods/status", "pods/ephemeralcontainers"):
        for verb in ("create", "patch", "delete"):
            answer = stage.kubectl("auth", "can-i", verb, resource, "-n", AGENTS, f"--as={SERVICE_ACCOUNT}")[1].strip()
            step.check(f"the agent's service account may not {verb} {resource}", answer.endswith("no"), answer)
    stage.kubectl("create", "rolebinding", USER, "--clusterrole=admin", f"--user={USER}", "-n", AGENTS)
    # The API server learns of rights a moment after they are given; who has none is refused for another reason.
    may = lambda: stage.kubectl("auth", "can-i", "patch", "secrets", "-n", AGENTS, f"--as={USER}")[0] == 0
    step.check("twin: the namespace's admin may change Secrets", becomes(may, PATIENCE), USER)
    label = {"metadata": {"labels": {"changed": "yes"}}}
    for who, person in (("the namespace's admin", [f"--as={USER}"]), ("the cluster's", [])):
        for name in OWNED:
            status, answer = stage.kubectl("patch", name, "-n", AGENTS, "--type=merge", "-p", json.dumps(label), *person)
            step.check(f"{who} may not change {name}", status != 0 and ("operator" in answer or "forbidden" in answer.lower()), answer)
            status, answer = stage.kubectl("delete", name, "-n", AGENTS, *person)
            step.check(f"{who} may not delete {name}", status != 0, answer)
        status, answer = stage.kubectl("delete", "configmaps", "--all", "-n", AGENTS, *person)
        step.check(f"{who} may not delete it with all others", stage.api.exists(f"/api/v1/namespaces/{AGENTS}/configmaps/postern-policy"), answer)
    status, answer = stage.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "own", "namespace": AGENTS}, "data": {"a": "b"}})
    removed = stage.delete("configmap", "own", AGENTS)
    step.check("twin: other ConfigMaps can be written and deleted", status == 0 and removed[0] == 0, (answer, removed))


def entered(stage, step):
    pod = stage.pod(CODER)
    index = [each["name"] for each in pod.object()["spec"]["initContainers"]].index(GATEWAY)
    change = [{"op": "replace", "path": f"/spec/initContainers/{index}/image", "value": images.AGENT}]
    debug, run = ["debug", CODER, f"--image={images.AGENT}"], ["--", "true"]
    attempts = {
        "another image for the gateway": ["patch", "pod", CODER, "--type=json", "-p", json.dumps(change)],
        "a copy that shares processes": [*debug, "--copy-to=copied", "--share-processes", *run],
        "a debugging container among the gateway's processes": [*debug, f"--target={GATEWAY}", *run],
        "one with NET_ADMIN": [*debug, "--profile=netadmin", *run],
        "one of the node's administrator": [*debug, "--profile=sysadmin", *run],
        "exec into the gateway": ["exec", CODER, "-c", GATEWAY, "--", "/postern", "status"],
        "attach to the gateway": ["attach", CODER, "-c", GATEWAY],
        "port-forward": ["port-forward", f"pod/{CODER}", f"18080:{manifests.UNDECLARED}"],
    }
    for words, arguments in attempts.items():
        status, answer = stage.kubectl(*arguments[:1], "-n", AGENTS, *arguments[1:], timeout=20)
        step.check(f"{words}: refused", status not in (0, None) and ("denied" in answer or "orbidden" in answer), answer)
    status, answer = pod.execute("true")
    step.check("twin: exec into the agent is not", status == 0, answer or "status 0")
    status, answer = stage.kubectl(*debug, "-n", AGENTS, "--profile=restricted", *run)
    step.check("twin: a debugging container that keeps to the rules is not", status == 0, answer)


def pod_security(stage, step):
    """The redirect's NET_ADMIN needs `privileged`; whoever asks for less is told so when a pod is made."""
    for level in ("baseline", "restricted"):
        name = f"level-{level}"
        labels = {"postern.dev/injection": "enabled", "pod-security.kubernetes.io/enforce": level}
        stage.create_namespace(manifests.namespace(name, **labels))
        status, answer = stage.apply(manifests.idle("agent", name))
        step.check(f"a namespace at {level}: the pod is refused, and NET_ADMIN is named", status != 0 and "NET_ADMIN" in answer, answer)
        stage.delete("namespace", name, wait=False)
