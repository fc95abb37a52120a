"""From nothing to a guarded pod: the chart, a namespace, a policy, an agent."""

import json
import time

import manifests
from chart import CHART, NAMESPACE, RELEASE
from manifests import NAMESPACE as AGENTS
from pods import GATEWAY, REDIRECT
from steps import Step
from waiting import PATIENCE, becomes

CODER = "coder"


def steps():
    yield Step("helm install", installed, needed=True)
    yield Step("a namespace, its policy and its credentials", first_policy, needed=True)
    yield Step("what a pod takes without Postern", reference, needed=True)
    yield Step("policies that are no policies are refused", refused)
    yield Step("a pod is injected and becomes Ready", injected, needed=True)


def installed(stage, step):
    started = time.monotonic()
    status, answer = stage.chart.install()
    stage.times.record(step, "helm install, until the operator is available", time.monotonic() - started)
    step.check("helm install waits until the operator is available", status == 0, answer if status == 0 else [answer, *stage.why_waiting(NAMESPACE)])
    replicas = lambda: stage.api.take(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/postern-operator")["status"]
    available = becomes(lambda: replicas().get("availableReplicas") == 2, PATIENCE)
    step.check("two replicas of the operator are available", available, replicas())
    for kind in ("mutating", "validating"):
        path = f"/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations/postern"
        bundles = lambda path=path: all(each["clientConfig"].get("caBundle") for each in stage.api.take(path)["webhooks"])
        seen = [(each["name"], each["failurePolicy"]) for each in stage.api.take(path)["webhooks"]]
        step.check(
            f"the {kind} webhooks have a caBundle, and fail closed", becomes(bundles, PATIENCE) and all(each[1] == "Fail" for each in seen), seen
        )
    status, answer = stage.chart.helm("test", RELEASE, "--timeout", f"{PATIENCE}s")
    step.check(f"helm test of {CHART.name}", status == 0, answer)


def first_policy(stage, step):
    stage.create_namespace(manifests.injected_namespace(), manifests.namespace(manifests.OTHER))
    stage.create(service_account())
    objects = {"configmaps/postern-policy": {}, "secrets/postern-ca": {}, "secrets/postern-credentials": {}}
    there = stage.measured(lambda: all(stage.api.exists(f"/api/v1/namespaces/{AGENTS}/{path}") for path in objects), PATIENCE)
    step.check("policy, CA and credentials are in the namespace before any pod", there is not None, there)
    asked = stage.measured(lambda: is_in_force(stage), PATIENCE)
    step.check("the API server asks the webhooks, and holds to the admission policies", asked is not None, asked)
    stage.create(manifests.secret(), manifests.policy())
    accepted = becomes(lambda: stage.condition("Accepted").get("status") == "True", PATIENCE)
    step.check("the policy is Accepted", accepted, stage.policy().get("status"))
    listed = stage.kubectl("get", "egresspolicies", "-n", AGENTS)[1]
    step.check("kubectl get shows the columns", "coding-agents" in listed, listed)


def reference(stage, step):
    """The median of three pods in a namespace that nobody injects: with it the times of this run are compared."""
    seconds = []
    for number in range(3):
        pod = stage.pod(f"reference-{number}", manifests.OTHER)
        stage.create(manifests.idle(pod.name, manifests.OTHER))
        seconds.append(stage.measured(pod.is_ready))
        stage.delete("pod", pod.name, manifests.OTHER, wait=False)
    came = sorted(each for each in seconds if each is not None)
    step.check("a pod that nobody injects becomes Ready", came, stage.why_waiting(manifests.OTHER))
    stage.times.record(step, stage.times.REFERENCE, came[len(came) // 2] if came else None)


def is_in_force(stage):
    """Of webhooks and of admission policies the API server learns a moment after they are stored; nothing is kept."""
    mounted = manifests.container("agent", manifests.IDLE, volumeMounts=[{"name": "theirs", "mountPath": "/ca"}])
    theirs = {"name": "theirs", "secret": {"secretName": "postern-ca"}}
    thief = manifests.agent("dry", manifests.OTHER, containers=[mounted], volumes=[theirs])
    dry = lambda given: stage.kubectl("create", "--dry-run=server", "-o", "json", "-f", "-", input=json.dumps(given))
    injected, answer = dry(manifests.idle("dry"))
    refused = [dry(manifests.policy("dry", **WRONG["the webhook"][0])), dry(thief)]
    denied = [status != 0 and word in text for (status, text), word in zip(refused, ("denied", "ValidatingAdmissionPolicy"))]
    return injected == 0 and GATEWAY in answer and all(denied)


BOTH = {"name": "both", "hosts": ["a.example.com"], "cidrs": ["10.0.0.0/8"], "action": "Tunnel"}
UNCLOSED = {"any": [{"param": "command", "operator": "Matches", "values": ["("]}]}
# By who refuses it, a policy's fields and words of the refusal.
WRONG = {
    "the schema": ({"enforcement": "Perhaps"}, "Unsupported value"),
    "an unknown field": ({"destination": []}, "unknown field"),
    "CEL": ({"destinations": [BOTH]}, "spec.destinations[0]"),
    "the webhook": ({"tools": [{"name": "open", "tools": ["Bash"], "action": "Deny", "when": UNCLOSED}]}, "denied"),
}


def refused(stage, step):
    for who, (spec, words) in WRONG.items():
        status, answer = stage.apply(manifests.policy("wrong", **spec))
        step.check(f"{who} refuses, and says what", status != 0 and words in answer, answer)
    listed = stage.kubectl("get", "egresspolicies", "-n", AGENTS, "-o", "name")[1]
    step.check("none of them is there", "wrong" not in listed, listed)


def injected(stage, step):
    pod = stage.pod(CODER)
    # It is there where the cluster was kept.
    if not pod.exists():
        stage.create(coder())
    stage.times.record(step, "an injected pod is Ready", stage.measured(pod.is_ready), 30)
    spec = pod.demand_ready().object()["spec"]
    names = [each["name"] for each in spec["initContainers"]]
    step.check("the redirect comes first, the gateway second", names[:2] == [REDIRECT, GATEWAY], names)
    gateway, redirect = pod.init_container(GATEWAY), pod.init_container(REDIRECT)
    policy = gateway.get("restartPolicy")
    step.check("the gateway is a native sidecar", policy == "Always", policy)
    context = gateway["securityContext"]
    without = context["runAsUser"] == pod.uid() and context["capabilities"] == {"drop": ["ALL"]}
    step.check("the gateway has a UID of its own and no capability", without, context)
    added = redirect["securityContext"]["capabilities"].get("add")
    step.check("the redirect alone adds NET_ADMIN", set(added) <= {"NET_ADMIN", "NET_RAW"}, redirect["securityContext"])
    for container in spec["containers"]:
        context = container["securityContext"]
        bounded = context["capabilities"]["drop"] == ["ALL"] and context["allowPrivilegeEscalation"] is False
        step.check(f"container {container['name']} drops ALL and gains nothing", bounded, context)
    mounted = spec.get("automountServiceAccountToken")
    step.check("no token of the service account is mounted", mounted is False, mounted)
    proven = pod.metric("postern_interception_proven")
    step.check("the gateway has proven interception", proven == 1, pod.ask("/readyz"))
    # What it printed last is in its log a moment after its end.
    becomes(lambda: "issuer" in pod.logs("prepare"), PATIENCE)
    answer = pod.logs("prepare").strip()
    guarded = "got out" not in answer and "Postern" in answer
    step.check("A13 an init container of the agent's is guarded already", guarded, answer)


def coder():
    prepare = manifests.container("prepare", manifests.PREPARE)
    return manifests.agent(CODER, serviceAccountName="agent", initContainers=[prepare])


def service_account():
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "agent", "namespace": AGENTS}}
