"""Annotations of namespaces and pods choose resources, a canary image and the log level."""

import images
import manifests
from pods import GATEWAY, REDIRECT
from steps import Step
from waiting import PATIENCE, becomes

BOUNDED, CANARY = "bounded", f"{images.GATEWAY}:canary"
KEY = "postern.dev/"
LIMITS = {
    f"{KEY}gateway-requests": "memory=100Mi",
    f"{KEY}gateway-limits": "cpu=500m,memory=200Mi",
    f"{KEY}redirect-requests": "memory=100Mi",
    f"{KEY}redirect-limits": "cpu=500m,memory=200Mi",
}
OWN = {"requests": {"cpu": "10m", "memory": "100Mi"}, "limits": {"cpu": "500m", "memory": "200Mi"}}


def steps():
    yield Step("a namespace with a quota and a LimitRange", limited)
    yield Step("a canary and the level of the log", chosen)
    yield Step("capabilities are asked for", capabilities)


def limited(stage, step):
    stage.create_namespace(manifests.injected_namespace(BOUNDED))
    stage.create(*bounds(), manifests.policy(namespace=BOUNDED), manifests.secret(namespace=BOUNDED))
    pod = manifests.idle("agent", BOUNDED)
    pod["spec"]["containers"][0]["resources"] = OWN
    status, answer = becomes(lambda: refused(stage.apply(pod), "limit"), PATIENCE) or stage.apply(pod)
    step.check("as the chart has it, the pod is refused by the limits", status != 0, answer)
    annotate(stage, "namespace", BOUNDED, LIMITS | {f"{KEY}gateway-limits": "memory=64Gi"})
    status, answer = becomes(lambda: refused(stage.apply(pod), "bound"), PATIENCE) or stage.apply(pod)
    step.check("past the chart's bounds, with a sentence that names both", status != 0 and "gateway-limits" in answer, answer)
    annotate(stage, "namespace", BOUNDED, LIMITS)
    made = stage.start(pod)
    given = {name: made.init_container(name)["resources"]["limits"] for name in (GATEWAY, REDIRECT)}
    step.check("with the namespace's annotations it runs", given == dict.fromkeys(given, OWN["limits"]), given)
    stage.delete("namespace", BOUNDED, wait=False)


def chosen(stage, step):
    stage.cluster.ctr("images", "tag", "--force", f"{images.GATEWAY}:{images.TAG}", CANARY)
    status, answer = stage.apply(manifests.idle("stranger", annotations={f"{KEY}gateway-image": "registry.example/other:1"}))
    step.check("an image that the chart does not list is refused", status != 0 and "no image that the chart lists" in answer, answer)
    pod = stage.start(manifests.idle("canary", annotations={f"{KEY}gateway-image": CANARY}))
    seen = [pod.init_container(name)["image"] for name in (REDIRECT, GATEWAY)]
    step.check("a pod runs the canary that the chart lists", seen == [CANARY, CANARY], seen)
    step.check("it says info", "another level" not in pod.logs(GATEWAY), pod.logs(GATEWAY)[-200:])
    annotate(stage, "pod", "canary", {f"{KEY}log-level": "debug"}, manifests.NAMESPACE)
    told = stage.measured(lambda: "level=DEBUG" in pod.logs(GATEWAY))
    stage.times.record(step, "the level of a running gateway's log, until it is another", told, 90)
    status, answer = stage.kubectl("annotate", "pod", "canary", "-n", manifests.NAMESPACE, f"{KEY}log-level=loud", "--overwrite")
    step.check("a level that is none is refused", status != 0 and "is none of" in answer, answer)
    stage.delete("pod", "canary", manifests.NAMESPACE, wait=False)


def capabilities(stage, step):
    asking = manifests.container("asking", manifests.IDLE, securityContext={"capabilities": {"add": ["CHOWN"]}})
    plain = manifests.container("agent", manifests.IDLE)
    pod = stage.start(manifests.agent("asks", containers=[plain, asking]))
    effective = {name: pod.execute("grep", "CapEff", "/proc/self/status", container=name)[1].split()[-1] for name in ("agent", "asking")}
    step.check(
        "who asks for nothing has none, who asks for CHOWN has it alone", effective == {"agent": "0" * 16, "asking": "0" * 15 + "1"}, effective
    )
    stage.delete("pod", "asks", manifests.NAMESPACE, wait=False)


def refused(told, word):
    """A refusal with this word in it, or nothing: of quotas and annotations the API server learns a moment later."""
    status, answer = told
    return told if status != 0 and word in answer else None


def bounds():
    limits = [{"type": "Container", "min": {"memory": "100Mi"}, "max": {"cpu": "1", "memory": "256Mi"}}]
    hard = {"requests.cpu": "2", "requests.memory": "2Gi", "limits.cpu": "4", "limits.memory": "4Gi"}
    for kind, spec in (("LimitRange", {"limits": limits}), ("ResourceQuota", {"hard": hard})):
        yield {"apiVersion": "v1", "kind": kind, "metadata": {"name": "bounds", "namespace": BOUNDED}, "spec": spec}


def annotate(stage, kind, name, annotations, namespace=None):
    where = ["-n", namespace] if namespace else []
    words = [f"{key}={value}" for key, value in annotations.items()]
    status, answer = stage.kubectl("annotate", kind, name, *where, "--overwrite", *words)
    if status:
        raise RuntimeError(f"kubectl annotate: {answer}")
