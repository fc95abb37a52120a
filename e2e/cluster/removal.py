"""Upgrades, drained nodes, deleted namespaces, and Postern's own end."""

import manifests
from chart import NAMESPACE as SYSTEM
from chart import OPERATOR, RELEASE
from manifests import NAMESPACE as AGENTS
from pods import GATEWAY
from steps import Step
from waiting import PATIENCE, becomes

NODE = "e2e-node"
KINDS = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations", "validatingadmissionpolicies"]


def steps():
    yield Step("an upgrade keeps policies", upgraded)
    yield Step("a node is drained", drained)
    yield Step("a namespace is deleted", deleted)
    yield Step("helm uninstall", uninstalled)


def upgraded(stage, step):
    before = stage.policy()["metadata"]["uid"]
    status, answer = stage.chart.install(redirect={"resources": {"limits": {"memory": "96Mi"}}})
    step.check("helm upgrade ends", status == 0, answer)
    step.check("the policy is the same", stage.policy()["metadata"]["uid"] == before, before)
    # Former replicas answer until the API server asks them no more.
    alone = becomes(lambda: [pod.stays() for pod in stage.pods_of(SYSTEM, OPERATOR)] == [True, True], PATIENCE)
    step.check("the former replicas are gone", alone, len(stage.pods_of(SYSTEM, OPERATOR)))
    pod = stage.start(manifests.idle("after-upgrade"))
    limits = pod.init_container("postern-redirect")["resources"].get("limits", {})
    step.check("new pods are injected with the new values", limits.get("memory") == "96Mi", limits)


def drained(stage, step):
    stage.create(manifests.deployment("moved", AGENTS))
    ready = lambda: [pod for pod in stage.pods_of(AGENTS, "app=moved") if pod.is_ready()]
    becomes(ready, PATIENCE)
    before = {pod.name for pod in ready()}
    # There is no other node to which the operator could move.
    chosen = ["--pod-selector=postern.dev/injected=true", "--force", "--delete-emptydir-data", f"--timeout={PATIENCE}s"]
    taken = stage.measured(lambda: stage.kubectl("drain", NODE, *chosen)[0] == 0)
    stage.times.record(step, "a drained node", taken, 90)
    left = [pod.name for pod in stage.pods_of(AGENTS) if pod.is_ready()]
    step.check("no injected pod is left on it", not left, left)
    stage.kubectl("uncordon", NODE)
    again = becomes(lambda: [pod.name for pod in ready() if pod.name not in before], PATIENCE)
    step.check("once it takes pods again, those of a Deployment start", again, again)


def deleted(stage, step):
    stage.kubectl("delete", "namespace", AGENTS, "--wait=false")
    gone = stage.measured(lambda: not stage.api.exists(f"/api/v1/namespaces/{AGENTS}"), PATIENCE)
    stage.times.record(step, "a namespace with all that Postern keeps there, deleted", gone, 90)


def uninstalled(stage, step):
    status, answer = stage.chart.uninstall()
    step.check("helm uninstall ends", status == 0, answer)
    left = stage.kubectl("get", ",".join(KINDS), "-o", "name")[1]
    step.check("no webhook and no admission policy is left", RELEASE not in left, left or "none")
    stage.create_namespace(manifests.injected_namespace("afterwards"))
    # The API server forgets an admission policy a moment after it is gone.
    bare = manifests.idle("agent", "afterwards")
    forgotten = stage.measured(lambda: stage.apply(bare)[0] == 0, PATIENCE)
    step.check("the API server asks them no more", forgotten is not None, forgotten)
    pod = stage.pod("agent", "afterwards").demand_ready()
    names = [each["name"] for each in pod.object()["spec"].get("initContainers", [])]
    step.check("pods of a labelled namespace start, without a gateway", GATEWAY not in names, names)
    crds = stage.kubectl("get", "crd", "-o", "name")[1]
    step.check("the CRDs, and so everybody's policies, are kept", "egresspolicies.postern.dev" in crds, crds)
