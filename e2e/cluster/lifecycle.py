"""Installs, upgrades and uninstalls the chart on a real API server, and looks at what each leaves as it was.

Nothing runs, so nobody answers the webhook: what must start without it starts, and what must not does not.
"""

import base64
import subprocess
from functools import cache

from administration import MERGE, STRATEGIC, Administration, said
from backstops import CHART, OPERATOR, PATIENCE, SYSTEM, image
from checks import Checks, at
from guarded_pod import changed, ephemeral, guarded, plain
from steps import Step
from waiting import becomes

LABELLED, OTHER = "lifecycle-labelled", "lifecycle-other"
HOOKS = [f"/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations/postern" for kind in ("mutating", "validating")]
BACKSTOPS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
POLICIES = f"/apis/postern.dev/v1alpha1/namespaces/{LABELLED}/egresspolicies"
POLICY = {
    "apiVersion": "postern.dev/v1alpha1", "kind": "EgressPolicy", "metadata": {"name": "kept"},
    "spec": {"destinations": [{"name": "one", "hosts": ["one.example"], "action": "Tunnel"}]},
}  # fmt: skip
HELD = {"finalizers": ["example.com/held"]}
JSON_PATCH = "application/json-patch+json"
BARE = plain()
BUNDLE = base64.b64encode(b"the operator's own").decode()


def steps():
    yield Step("the chart installed, upgraded and uninstalled", lives)


def lives(_stage, step):
    api = Administration()
    checks = Checks(step, api)
    before(api)
    try:
        for part in (installed, unreachable, goes_on, upgraded, uninstalled):
            part(checks)
    finally:
        clean(api)


@cache
def pods():
    """Pods from before: with a gateway and without, where all are injected and where a pod asks for itself."""
    owned = changed(guarded(image()), "spec/containers/0/securityContext/runAsUser", 1000)
    return [(namespace, name, pod) for namespace in (LABELLED, OTHER) for name, pod in (("bare", BARE), ("guarded", owned))]


def before(api):
    """CRDs with a policy from before, and two namespaces."""
    kubectl("apply", "--server-side", "--force-conflicts", "--filename", str(CHART / "crds"))
    for name, labels in ((LABELLED, {"postern.dev/injection": "enabled"}), (OTHER, {})):
        api.must("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
    for namespace, name, pod in pods():
        api.must("POST", at(namespace, "pods"), pod | {"metadata": pod["metadata"] | HELD | {"name": name}})
    policy = POLICY | {"metadata": POLICY["metadata"] | HELD}
    if not becomes(lambda: api.ask("POST", POLICIES, policy)[0] in (201, 409), PATIENCE):
        raise RuntimeError(f"after {PATIENCE} s the API server still does not take an EgressPolicy")


def installed(checks):
    result = helm("install", "postern", str(CHART), "--create-namespace")
    checks.expect(result.returncode == 0, "helm install where the CRDs and a policy are already", result.stderr)
    for path in HOOKS:
        status, configuration = checks.api.ask("GET", path)
        bundles = [each["clientConfig"].get("caBundle") for each in configuration.get("webhooks", [])]
        checks.expect(status == 200 and bundles and not any(bundles), f"{path.split('/')[-2]} without a caBundle", bundles)
        patch = [{"op": "add", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": BUNDLE} for index in range(len(bundles))]
        status, answer = soon(lambda: checks.api.ask("PATCH", path, patch, JSON_PATCH, as_user=OPERATOR), 200)
        checks.expect(status == 200, "the operator may write caBundle", said(answer))
    status, _ = checks.api.ask("DELETE", HOOKS[0] + "?dryRun=All", as_user=OPERATOR)
    checks.expect(status == 403, "the operator may not delete its webhooks", status)


def unreachable(checks):
    """Nobody answers: pods that must be injected do not start, and are told why; all others do (threat H2)."""
    for what, path, body in (
        ("a pod of a labelled namespace", at(LABELLED, "pods"), plain()),
        ("a pod whose label asks", at(OTHER, "pods"), plain(labels={"postern.dev/inject": "true"})),
        ("a pod whose annotation asks", at(OTHER, "pods"), plain(annotations={"postern.dev/inject": "true"})),
        ("a policy", POLICIES, POLICY | {"metadata": {"name": "another"}}),
    ):
        status, answer = soon(lambda: checks.api.ask("POST", path + "?dryRun=All", body), 500)
        checks.expect(status == 500 and "postern.dev" in said(answer), f"refused without the webhook: {what}", f"{status} {said(answer)}")
    for namespace in (OTHER, "kube-system", SYSTEM):
        checks.admitted(f"a pod in {namespace}", "POST", at(namespace, "pods", more="?dryRun=All"), plain())
    checks.admitted("a policy's deletion", "DELETE", f"{POLICIES}/kept?dryRun=All")


def goes_on(checks):
    """Nobody answers still: of what is there already, nothing stops that Postern does not judge (threat H2)."""
    for namespace, name, pod in pods():
        path, what = at(namespace, "pods", name), f"{name} in {namespace}"
        for part in ("annotations", "labels"):
            done = {"metadata": {part: {"workflows.argoproj.io/completed": "true"}}}
            checks.admitted(f"a workflow's {part} on a pod: {what}", "PATCH", path, done, MERGE)
        shorter = {"spec": {"activeDeadlineSeconds": 60}}
        added = {"spec": {"ephemeralContainers": [ephemeral()]}}
        another = {"spec": {"containers": [{"name": "agent", "image": "registry.example/agent:2"}]}}
        judged = [("ephemeral container", path + "/ephemeralcontainers", added), ("image", path, another), ("deadline", path, shorter)]
        if namespace == LABELLED or pod is not BARE:
            for part, where, body in judged:
                unanswered(checks, f"another {part}: {what}", where, body)
        checks.admitted(f"deletion of a pod: {what}", "DELETE", path)
        leaving = checks.api.must("GET", path)["metadata"]
        checks.expect("deletionTimestamp" in leaving, f"it waits for its finalizer: {what}", leaving)
        checks.admitted(f"a label of a pod that leaves: {what}", "PATCH", path, {"metadata": {"labels": {"postern.dev/inject": "false"}}}, MERGE)
        checks.admitted(f"a deadline of a pod that leaves: {what}", "PATCH", path, shorter, MERGE)
        if pod is not BARE:
            unanswered(checks, f"an image of a pod that leaves: {what}", path, another)
        checks.admitted(f"its finalizer: {what}", "PATCH", path, {"metadata": {"finalizers": None}}, MERGE)
        checks.api.ask("DELETE", path, {"gracePeriodSeconds": 0, "kind": "DeleteOptions", "apiVersion": "v1"})
        checks.expect(checks.api.ask("GET", path)[0] == 404, f"the pod is gone: {what}")
    kept = f"{POLICIES}/kept"
    checks.admitted("an annotation of a policy", "PATCH", kept, {"metadata": {"annotations": {"argocd.argoproj.io/tracking-id": "a"}}}, MERGE)
    checks.admitted("a policy's finalizer", "PATCH", kept, {"metadata": {"finalizers": None}}, MERGE)
    unanswered(checks, "an edit of a policy", kept, {"spec": {"destinations": []}}, MERGE)


def unanswered(checks, what, path, body, kind=STRATEGIC):
    """A change that the webhook judges waits for the operator."""
    status, answer = checks.api.ask("PATCH", path, body, kind)
    right = status == 500 and "failed calling webhook" in said(answer) and "postern.dev" in said(answer)
    checks.expect(right, f"refused without the webhook: {what}", f"{status} {said(answer)}")


def upgraded(checks):
    result = helm("upgrade", "postern", str(CHART), "--set", "webhook.timeoutSeconds=7")
    checks.expect(result.returncode == 0, "helm upgrade", result.stderr)
    for path in HOOKS:
        hooks = checks.api.must("GET", path)["webhooks"]
        kept = {each["clientConfig"].get("caBundle") for each in hooks} == {BUNDLE}
        checks.expect(kept and {each["timeoutSeconds"] for each in hooks} == {7}, f"{path.split('/')[-2]}: new values, caBundle kept", hooks)
    checks.expect(checks.api.ask("GET", f"{POLICIES}/kept")[0] == 200, "the policy is kept")


def uninstalled(checks):
    result = helm("uninstall", "postern")
    checks.expect(result.returncode == 0, "helm uninstall", result.stderr)
    for path in HOOKS:
        checks.expect(checks.api.ask("GET", path)[0] == 404, f"no {path.split('/')[-2]} left")
    left = [each["metadata"]["name"] for each in checks.api.must("GET", BACKSTOPS)["items"] if each["metadata"]["name"].startswith("postern-")]
    checks.expect(not left, "no admission policy left", left)
    status, answer = soon(lambda: checks.api.ask("POST", at(LABELLED, "pods", more="?dryRun=All"), plain()), 201)
    checks.expect(status == 201, "a pod of the labelled namespace starts", f"{status} {said(answer)}")
    checks.expect(checks.api.ask("GET", f"{POLICIES}/kept")[0] == 200, "the policy is kept")
    result = helm("install", "postern", str(CHART))
    checks.expect(result.returncode == 0, "helm install once more", result.stderr)
    helm("uninstall", "postern")


def soon(ask, wanted):
    """The answer that is waited for, or the last one: of rights and of webhooks, new and gone, the API server learns a
    moment after they are stored."""
    answers = []

    def comes():
        answers.append(ask())
        return answers[-1][0] == wanted

    becomes(comes, PATIENCE)
    return answers[-1]


def clean(api):
    helm("uninstall", "postern", "--ignore-not-found")
    kubectl("delete", "--ignore-not-found", "--wait=false", "--filename", str(CHART / "crds"))
    for path in [*(at(namespace, "pods", name) for namespace, name, _ in pods()), f"{POLICIES}/kept"]:
        api.ask("PATCH", path, {"metadata": {"finalizers": None}}, MERGE)
    for name in (LABELLED, OTHER, SYSTEM):
        for kind in ("configmaps", "secrets", "pods"):
            api.ask("DELETE", at(name, kind))
        api.ask("DELETE", f"/api/v1/namespaces/{name}")
        status, namespace = api.ask("GET", f"/api/v1/namespaces/{name}")
        if status == 200:
            api.ask("PUT", f"/api/v1/namespaces/{name}/finalize", namespace | {"spec": {"finalizers": []}})


def helm(*arguments):
    return subprocess.run(["helm", *arguments, "--namespace", SYSTEM], capture_output=True, text=True)


def kubectl(*arguments):
    subprocess.run(["kubectl", *arguments], check=True, capture_output=True)
