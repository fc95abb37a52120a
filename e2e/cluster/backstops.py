"""The chart's admission policies on a real API server: they refuse what they must, and nothing else.

No webhook is asked, so that the policies stand alone. Where nothing else is said every refusal is asked for as cluster-admin.
"""

import base64
import functools
import subprocess
from pathlib import Path

from administration import APPLY, MERGE, STRATEGIC, Administration, said
from checks import Checks, at, is_refused, named
from guarded_pod import ADMIN, DRAWN, FIELDS, LIBRARY, SETTINGS, UID, changed, ephemeral, guarded, keeping_results, plain, with_workspace
from steps import Step
from waiting import PATIENCE, becomes

CHART = Path(__file__).parents[2] / "charts" / "postern"
SYSTEM, LABELLED, OTHER, ENDING = "postern-system", "backstops-labelled", "backstops-other", "backstops-ending"
OPERATOR = f"system:serviceaccount:{SYSTEM}:postern-operator"
NAMESPACE_CONTROLLER = "system:serviceaccount:kube-system:namespace-controller"
HOST_PATH = "/var/lib/datasets"
TRACES = {"name": "OTEL_EXPORTER_OTLP_ENDPOINT", "value": "http://collector:4317"}
OWNED = [("configmaps", "postern-policy"), ("secrets", "postern-ca"), ("secrets", "postern-credentials")]
BUNDLE = base64.b64encode(b"the operator's own").decode()
LABEL = "metadata/labels/" + DRAWN.replace("/", "~1")
TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount"
STAYING = ("restartPolicy", "startupProbe", "livenessProbe", "readinessProbe")
RESIZED = [{"resourceName": name, "restartPolicy": "NotRequired"} for name in ("cpu", "memory")]


def steps():
    yield Step("the admission policies of the chart", refuse_what_they_must)


def refuse_what_they_must(_stage, step):
    api = Administration()
    checks = Checks(step, api)
    try:
        prepare(api)
        for section in (owned, rights, ending_namespace, shape, companion, fields, containers, users, secrets, running, stolen_token, connections, pod_security, results):
            section(checks)
    finally:
        clean(api)


def rendered(*more):
    """Policies and what the operator may do, as the chart writes them, with `more` values."""
    shown = [f"templates/backstops/{path.name}" for path in sorted((CHART / "templates" / "backstops").glob("*.yaml"))]
    shown += ["templates/operator/rbac.yaml", "templates/operator/service-account.yaml"]
    options = [option for template in shown for option in ("--show-only", template)]
    command = [
        "helm",
        "template",
        "postern",
        CHART,
        "--namespace",
        SYSTEM,
        "--set",
        f"injection.hostPaths={{{HOST_PATH}}},gateway.env[0].name={TRACES['name']},gateway.env[0].value={TRACES['value']}",
        *(option for value in more for option in ("--set", value)),
    ]
    return subprocess.run([*command, *options], check=True, capture_output=True).stdout


@functools.cache
def image():
    """The gateway's image, as the chart writes it into the operator's settings."""
    command = ["helm", "template", "postern", CHART, "--namespace", SYSTEM, "--show-only", "templates/operator/config.yaml"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return next(line.split("image: ")[1] for line in text.splitlines() if " image: " in line)


def prepare(api):
    """Namespaces, the policies, and a wait until the API server holds to each of them."""
    for name, labels in ((SYSTEM, {}), (LABELLED, {"postern.dev/injection": "enabled"}), (OTHER, {}), (ENDING, {})):
        if api.ask("GET", f"/api/v1/namespaces/{name}")[0] == 404:
            api.must("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
    apply(rendered())
    for kind in ("Mutating", "Validating"):
        path = f"/apis/admissionregistration.k8s.io/v1/{kind.lower()}webhookconfigurations"
        api.ask("DELETE", f"{path}/postern")
        api.must("POST", path, configuration(kind))
    # What is changed, and what is entered; no policy has anything against either.
    for namespace, pod in ((LABELLED, guarded(image(), "probed")), (OTHER, plain("probed"))):
        if api.ask("GET", at(namespace, "pods", "probed"))[0] == 404:
            api.must("POST", at(namespace, "pods"), pod)
    # The API server compiles a policy, and learns of rights, a moment after they are stored.
    late = lambda: [
        policy
        for user, asked in ((None, violations()), (OPERATOR, violations_of_the_operator()))
        for policy, ask in asked.items()
        if not is_refused(policy, *api.ask(*ask, as_user=user))
    ]
    if not becomes(lambda: not late(), PATIENCE):
        raise RuntimeError(f"after {PATIENCE} s the API server still does not hold to {late()}")
    written = lambda: all(api.ask(*ask, as_user=OPERATOR)[0] < 300 for ask in writes("?dryRun=All&fieldManager=a"))
    if not becomes(written, PATIENCE):
        raise RuntimeError(f"after {PATIENCE} s the operator may still not write what is its own")


def apply(manifests):
    subprocess.run(["kubectl", "apply", "--server-side", "--force-conflicts", "-f", "-"], input=manifests, check=True, capture_output=True)


def violations():
    """By policy, what it refuses and no other does; none of it is kept."""
    unconfined = changed(guarded(image()), "spec/containers/0/securityContext/seccompProfile/type", "Unconfined")
    reader = changed(plain(), "spec/containers/0/envFrom", [{"secretRef": {"name": "postern-ca"}}])
    pretends, loose = {"metadata": {"labels": {"postern.dev/injected": "true"}}}, ephemeral(securityContext={})
    entered, added = "/exec?container=postern-gateway&command=ls", "/ephemeralcontainers?dryRun=All"
    dry = {"more": "?dryRun=All"}
    return {
        "postern-owned": ("POST", at(OTHER, "configmaps", **dry), named("postern-policy")),
        "postern-shape": ("POST", at(LABELLED, "pods", **dry), bounded()),
        "postern-containers": ("POST", at(LABELLED, "pods", **dry), unconfined),
        "postern-secrets": ("POST", at(OTHER, "pods", **dry), reader),
        "postern-images": ("PATCH", at(OTHER, "pods", "probed", **dry), pretends, MERGE),
        "postern-ephemeral": (*("PATCH", at(LABELLED, "pods", "probed", added)), *({"spec": {"ephemeralContainers": [loose]}}, STRATEGIC)),
        "postern-exec": ("POST", at(LABELLED, "pods", "probed", entered)),
    }


def violations_of_the_operator():
    """Returns the same for the policies that bind the operator alone."""
    return {"postern-operator": ("DELETE", at(OTHER, "pods", "probed", "?dryRun=All"))}


def configuration(kind, policy="Fail"):
    """Webhooks by the names of the chart's, which ask about nothing, so that nobody need answer them."""
    infix = "" if kind == "Mutating" else "validate."
    hook = {
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": policy,
        "clientConfig": {"service": {"name": "postern-webhook", "namespace": SYSTEM, "path": "/pods/mutate"}},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
        "objectSelector": {"matchLabels": {"nobody.example/has": "this"}},
    }
    names = [f"{scope}.{infix}pods.postern.dev" for scope in ("namespace", "pod")]
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{kind}WebhookConfiguration",
        "metadata": {"name": "postern"},
        "webhooks": [hook | {"name": name} for name in names],
    }


def hook_path(kind="mutating"):
    return f"/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations/postern"


def writes(query):
    """The operator's, of what it keeps in a namespace."""
    return [("PATCH", at(OTHER, kind, name, query), named(name, kind), APPLY) for kind, name in OWNED]


def clean(api):
    """Policies first: they would keep what is theirs."""
    subprocess.run(["kubectl", "delete", "--ignore-not-found", "-f", "-"], input=rendered(), check=True, capture_output=True)
    for kind in ("mutating", "validating"):
        api.ask("DELETE", hook_path(kind))
    api.ask("DELETE", at("kube-system", "pods", "running", "?gracePeriodSeconds=0"))
    for name in (LABELLED, OTHER, ENDING, SYSTEM):
        for kind in ("pods", "configmaps", "secrets"):
            api.ask("DELETE", at(name, kind), {"gracePeriodSeconds": 0, "kind": "DeleteOptions", "apiVersion": "v1"})
        api.ask("DELETE", f"/api/v1/namespaces/{name}")
        status, namespace = api.ask("GET", f"/api/v1/namespaces/{name}")
        if status == 200:
            api.ask("PUT", f"/api/v1/namespaces/{name}/finalize", namespace | {"spec": {"finalizers": []}})


def owned(checks):
    """Only the operator writes its objects, in every namespace (threats A23, H6)."""
    for kind, name in OWNED:
        apply = functools.partial(named, name, kind)
        for namespace in (LABELLED, OTHER, "kube-system"):
            checks.refused("postern-owned", f"CREATE of {name} in {namespace}", "POST", at(namespace, kind), apply())
        path = at(OTHER, kind, name)
        checks.refused("postern-owned", f"apply of {name}", "PATCH", path + "?fieldManager=me", apply(), APPLY)
        twin = "the operator's CREATE of " + name
        checks.admitted(twin, "PATCH", path + "?fieldManager=postern-operator", apply(), APPLY, as_user=OPERATOR)
        for what, body in (("data", {"data": {"settings": "e30="}}), ("a label", {"metadata": {"labels": {"a": "b"}}}),
                           ("a finalizer", {"metadata": {"finalizers": ["example.com/held"]}}), ("immutable", {"immutable": True})):  # fmt: skip
            checks.refused("postern-owned", f"UPDATE of {name}: {what}", "PATCH", path, body, MERGE)
        checks.admitted(f"{name} written again as it is", "PUT", path, checks.api.must("GET", path))
        change = apply(data={"settings": "e30="})
        checks.admitted(f"the operator's UPDATE of {name}", "PATCH", path + "?fieldManager=postern-operator", change, APPLY, as_user=OPERATOR)
        checks.refused("postern-owned", f"DELETE of {name}", "DELETE", path)
        checks.refused("postern-owned", f"deletion of all {kind} with {name} among them", "DELETE", at(OTHER, kind))
        checks.refused(
            "postern-owned", f"DELETE of {name} by the namespace controller while the namespace lives", "DELETE", path, as_user=NAMESPACE_CONTROLLER
        )
        checks.admitted(f"the operator's DELETE of {name}", "DELETE", path, as_user=OPERATOR)
        checks.admitted(f"deletion of all {kind} elsewhere", "DELETE", at(ENDING, kind))
    for kind in ("kubernetes.io/service-account-token", "mine"):
        typed = named("postern-ca", "secrets", type=kind) | token_of("default")
        path = at(ENDING, "secrets", "postern-ca", "?fieldManager=postern-operator")
        # Two policies refuse it, and the API server names either.
        status, answer = checks.api.ask("PATCH", path, typed, APPLY, as_user=OPERATOR)
        refused = any(is_refused(policy, status, answer) for policy in ("postern-owned", "postern-operator"))
        checks.expect(refused, f"the operator makes no postern-ca of type {kind}", f"{status} {said(answer)}")
    checks.admitted("a ConfigMap of another name", "POST", at(LABELLED, "configmaps"), named("mine"))
    checks.admitted("its DELETE", "DELETE", at(LABELLED, "configmaps", "mine"))
    checks.admitted("a Secret with the ConfigMap's name", "POST", at(LABELLED, "secrets", more="?dryRun=All"), named("postern-policy", "secrets"))


def token_of(account):
    """By which the API server's controllers fill a Secret of that type with the account's token."""
    return {"metadata": {"name": "postern-ca", "annotations": {"kubernetes.io/service-account.name": account}}}


def rights(checks):
    """RBAC gives the operator these objects by name, and no others (threat H8)."""
    ask = functools.partial(checks.api.ask, as_user=OPERATOR)
    for kind, name in (("configmaps", "other"), ("secrets", "other"), ("secrets", "postern-root-ca")):
        status, _ = ask("PATCH", at(OTHER, kind, name) + "?fieldManager=x", named(name, kind), APPLY)
        checks.expect(status == 403, f"the operator makes no {kind} {name}", status)
    for kind in ("configmaps", "secrets"):
        checks.expect(ask("GET", f"/api/v1/{kind}")[0] == 403, f"it lists no {kind}")
        checks.expect(ask("GET", f"/api/v1/{kind}?fieldSelector=metadata.name%3Dother")[0] == 403, "not those of another name")
    for kind, name in OWNED:
        checks.expect(ask("GET", f"/api/v1/{kind}?fieldSelector=metadata.name%3D{name}")[0] == 200, f"it lists {kind} {name} of all namespaces")
    refused = [("POST", at(OTHER, "pods"), plain()), ("PATCH", at(OTHER, "pods", "a"), {}), ("POST", at(OTHER, "pods", "a", "/exec?command=ls")),
               ("POST", "/api/v1/namespaces", {"metadata": {"name": "a"}}), ("DELETE", at(OTHER, "pods")), ("DELETE", at(OTHER, "secrets"))]  # fmt: skip
    for request in refused:
        checks.expect(
            ask(*request, **({"kind": MERGE} if request[0] == "PATCH" else {}))[0] == 403,
            f"it may not {request[0]} {request[1].split('/')[-1].split('?')[0]}",
        )


def ending_namespace(checks):
    """A namespace that is deleted takes Postern's objects with it, by the namespace controller alone."""
    for kind, name in OWNED:
        path = at(ENDING, kind, name) + "?fieldManager=postern-operator"
        checks.admitted(f"{name} in a namespace that will end", "PATCH", path, named(name, kind), APPLY, as_user=OPERATOR)
    checks.admitted("DELETE of the namespace", "DELETE", f"/api/v1/namespaces/{ENDING}")
    first = at(ENDING, OWNED[0][0], OWNED[0][1], "?dryRun=All")
    ends = lambda: checks.api.ask("DELETE", first, as_user=NAMESPACE_CONTROLLER)[0] < 300
    # Policies are shown a namespace as the API server remembers it.
    checks.expect(becomes(ends, PATIENCE), "policies are shown a moment later that it ends")
    for kind, name in OWNED:
        checks.refused("postern-owned", f"DELETE of {name} by another in a namespace that ends", "DELETE", at(ENDING, kind, name))
    for kind in ("configmaps", "secrets"):
        checks.admitted(f"the namespace controller's deletion of {kind}", "DELETE", at(ENDING, kind), as_user=NAMESPACE_CONTROLLER)
        left = checks.api.must("GET", at(ENDING, kind))["items"]
        checks.expect(not left, f"no {kind} left", left)


def companion(checks):
    """The companion of a workspace reads the volume that the pod names, and nothing else (threat O4)."""
    good = with_workspace(image())
    refuse = functools.partial(create, checks, "postern-shape")
    create(checks, None, "a pod with a companion", good)
    own = "spec/initContainers/2"
    for what, path, value in (
        ("a companion that writes", f"{own}/volumeMounts/0/readOnly", None),
        ("one that reads another volume", f"{own}/volumeMounts/0/name", "other"),
        ("one that reads elsewhere", f"{own}/volumeMounts/0/mountPath", "/etc/postern"),
        ("one with a third volume", f"{own}/volumeMounts/+", {"name": "work", "mountPath": "/more", "readOnly": True}),
        ("one with the gateway's policy", f"{own}/volumeMounts/+", {"name": "postern-policy", "mountPath": "/policy", "readOnly": True}),
        ("one with the API server's token", f"{own}/volumeMounts/+", {"name": "kube-api-access-x", "mountPath": TOKEN, "readOnly": True}),
        ("one that is the gateway's user", f"{own}/securityContext/runAsUser", UID),
        ("one that is root", f"{own}/securityContext/runAsUser", 0),
        ("one with a capability", f"{own}/securityContext/capabilities/add", ["NET_BIND_SERVICE"]),
        ("one that does something else", f"{own}/args", ["gateway", "--config", SETTINGS]),
        ("one with another root", f"{own}/args/2", "/"),
        ("one of another image", f"{own}/image", "registry.example/evil:1"),
        ("one with a command", f"{own}/command", ["/bin/sh"]),
        ("one with a variable", f"{own}/env", [{"name": "A", "value": "b"}]),
        ("one with a port", f"{own}/ports", [{"containerPort": 80}]),
        ("one that does not stay", f"{own}/restartPolicy", None),
        ("one that nobody asks for", "metadata/annotations", None),
        ("one of a volume that no agent mounts", "spec/containers/0/volumeMounts/1/name", "other"),
        ("a socket on the node's disk", f"spec/volumes/{len(good['spec']['volumes']) - 1}/emptyDir/medium", None),
        ("a socket out of a Secret", f"spec/volumes/{len(good['spec']['volumes']) - 1}", {"name": "postern-workspace", "secret": {"secretName": "mine"}}),
    ):
        pod = changed(good, path, value)
        pod["spec"]["volumes"] += [{"name": name, "emptyDir": {}} for name in ("other", "kube-api-access-x")]
        refuse(what, pod)
    with_socket = changed(good, "spec/containers/0/volumeMounts/+", {"name": "postern-workspace", "mountPath": "/x", "readOnly": True})
    create(checks, "postern-containers", "an agent with the companion's socket", with_socket)


def shape(checks):
    """A pod that must be guarded is one as the operator makes it (threats A13, H1, H2, H14)."""
    good, asks = guarded(image()), {"postern.dev/inject": "true"}
    refuse = functools.partial(create, checks, "postern-shape")
    admit = functools.partial(create, checks, None)
    refuse("a plain pod in a labelled namespace", bounded())
    refuse("a plain pod that says no", bounded(annotations={"postern.dev/inject": "false"}))
    refuse("a plain pod whose label asks", bounded(labels=asks), OTHER)
    refuse("a plain pod whose annotation asks", bounded(annotations=asks), OTHER)
    admit("a plain pod elsewhere", plain(), OTHER)
    admit("a plain pod in kube-system", plain(), "kube-system")
    admit("a plain pod beside the operator", plain(), SYSTEM)
    for namespace in (LABELLED, OTHER):
        admit(f"an injected pod in {namespace}", good, namespace)
    admit("one with declared ports", arguments(good, "--inbound-ports", "80,8443"))
    admit("one with a CA of the agent's own", with_own_roots(good))
    copy = changed(changed(good, "metadata/labels", None), "spec/securityContext", {"runAsUser": 1000})
    refuse("a copy without labels (kubectl debug --copy-to)", copy, OTHER)
    refuse("a container with a name of Postern's", changed(bounded(), "spec/containers/0/name", "postern-tools"), OTHER)
    refuse("a third container with such a name", changed(good, "spec/containers/0/name", "postern-tools"))
    refuse(
        "an init container before the redirect",
        changed(good, "spec/initContainers", [good["spec"]["containers"][0] | {"name": "first"}, *good["spec"]["initContainers"]]),
    )
    refuse("a gateway that does not stay", functools.reduce(lambda pod, field: changed(pod, f"spec/initContainers/1/{field}", None), STAYING, good))
    for field in ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace"):
        pod = changed(good, f"spec/{field}", True)
        refuse(field, pod if field != "hostNetwork" else changed(pod, "spec/initContainers/1/ports", None))
    for index, name in enumerate(("redirect", "gateway")):
        own = f"spec/initContainers/{index}"
        # Without what postern-secrets would refuse before; of its own reasons a policy says the first.
        mounts = good["spec"]["initContainers"][1]["volumeMounts"]
        open_to_all = [mount for mount in mounts if mount["name"] not in ("postern-ca", "postern-credentials")]
        bare = changed(good, "spec/initContainers/1/volumeMounts", open_to_all)
        refuse(f"another image of the {name}", changed(bare, f"{own}/image", "registry.example/evil:1"), words="run Postern's image")
        refuse(f"another tag of the {name}", changed(bare, f"{own}/image", image() + "-evil"), words="run Postern's image")
        refuse(f"a command of the {name}", changed(good, f"{own}/command", ["/bin/sh"]))
        refuse(
            f"a {name} that is privileged",
            changed(changed(good, f"{own}/securityContext/allowPrivilegeEscalation", True), f"{own}/securityContext/privileged", True),
        )
        refuse(f"a {name} with SYS_ADMIN", changed(good, f"{own}/securityContext/capabilities/add", ["SYS_ADMIN"]))
    refuse("a redirect that does nothing", arguments(good, "--dry-run", ""))
    refuse("a redirect that lets another UID out", changed(good, "spec/initContainers/0/args/2", "1000"))
    refuse("a gateway under another UID", changed(good, "spec/initContainers/1/securityContext/runAsUser", UID + 1))
    refuse("a gateway with settings of its own", changed(good, "spec/initContainers/1/args/2", "/tmp/settings"))
    refuse("a gateway with a variable of its own", changed(good, "spec/initContainers/1/env/+", {"name": "LD_PRELOAD", "value": "x"}))
    env = "spec/initContainers/1/env"
    refuse("a gateway that does not intercept", changed(good, f"{env}/0/value", "0"))
    without = [entry for entry in good["spec"]["initContainers"][1]["env"] if entry["name"] != "POSTERN_INTERCEPT"]
    refuse("a gateway that is not told to intercept", changed(good, env, without))
    for index, name in enumerate(FIELDS, 1):
        refuse(f"a value of one's own for {name}", changed(good, f"{env}/{index}", {"name": name, "value": ""}))
        other = "metadata.annotations['mine']"
        refuse(f"{name} from another field", changed(good, f"{env}/{index}/valueFrom/fieldRef/fieldPath", other))
    refuse("a variable of Postern's twice", changed(good, f"{env}/+", {"name": "POSTERN_NODE_ADDRESSES", "value": ""}))
    refuse("another variable of that name", changed(good, f"{env}/+", {"name": "POSTERN_OTHER", "value": "1"}))
    room, volume = len(FIELDS) + 1, len(good["spec"]["volumes"]) - 1
    refuse("a gateway that is not told how large its ledger may become", changed(good, f"{env}/{room}", None))
    refuse("a size of a ledger that is none", changed(good, f"{env}/{room}/value", "all"))
    refuse("a gateway without a volume for its ledger", changed(good, "spec/initContainers/1/volumeMounts/8", None))
    refuse("a ledger on somebody's claim", changed(good, f"spec/volumes/{volume}", {"name": "postern-ledger", "persistentVolumeClaim": {"claimName": "mine"}}))
    refuse("a redirect with a variable", changed(good, "spec/initContainers/0/env", [{"name": "PATH", "value": "/x"}]))
    refuse("a redirect that nobody waits for", changed(good, "spec/initContainers/0/restartPolicy", "Always"))
    refuse(
        "a gateway that is ready before it is", changed(good, "spec/initContainers/1/startupProbe", {"exec": {"command": ["/postern", "--version"]}})
    )
    for index, name in enumerate(("redirect", "gateway")):
        own = f"spec/initContainers/{index}/resources"
        refuse(f"a device for the {name}", changed(good, own, {"limits": {"example.com/device": "1"}}))
        claimed = changed(good, "spec/resourceClaims", [{"name": "device", "resourceClaimName": "mine"}])
        refuse(f"a claimed device for the {name}", changed(claimed, own, {"claims": [{"name": "device"}]}))
        admit(f"what limits of a namespace give the {name}", changed(good, own, {"limits": {"memory": "1Gi"}}))
    traced = "spec/initContainers/1/env/+"
    admit("a gateway with the chart's variable", changed(good, traced, TRACES))
    refuse("a gateway that traces elsewhere", changed(good, traced, TRACES | {"value": "http://evil:4317"}))
    refuse("a policy from another ConfigMap", changed(good, "spec/volumes/0/configMap/name", "mine"))
    over = changed(good, "spec/volumes/+", {"name": "mine", "configMap": {"name": "mine"}})
    over = changed(over, "spec/initContainers/1/volumeMounts/+", {"name": "mine", "mountPath": SETTINGS, "subPath": "settings"})
    refuse("settings mounted over the operator's", over)
    mine, mounts = {"name": "mine", "configMap": {"name": "mine"}}, "spec/initContainers/1/volumeMounts/+"
    aside = changed(good, "spec/volumes/+", mine)
    refuse("a policy mounted by a way around", changed(aside, mounts, {"name": "mine", "mountPath": "/etc/postern/own-roots/../policy"}))
    own = {"name": "postern-ca", "mountPath": "/etc/postern/own-roots/agent/SSL_CERT_FILE.pem", "subPath": "ca-key.pem"}
    refuse("the gateway's key as an agent's CA", changed(good, mounts, own))
    for index, name in ((6, "hosts"), (7, "resolv.conf")):
        own = f"spec/initContainers/1/volumeMounts/{index}"
        refuse(f"a gateway that shares the agents' {name}", changed(good, own, None))
        refuse(f"another file as {name}", changed(aside, f"{own}/name", "mine"))


def fields(checks):
    """Of Postern's containers and volumes every field is as the operator writes it, or is refused (threat H15)."""
    good = guarded(image())
    refuse = functools.partial(create, checks, "postern-shape")
    admit = functools.partial(create, checks, None)
    mine = changed(good, "spec/volumes/+", {"name": "mine", "configMap": {"name": "mine", "defaultMode": 0o755}})
    runs = {"exec": {"command": ["/etc/postern/own-roots/agent/SSL_CERT_FILE.pem"]}}
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        where = f"spec/initContainers/1/{probe}"
        refuse(f"a {probe} of the gateway that runs a mounted file", changed(with_own_roots(good), where, runs))
        refuse(f"a {probe} of the gateway by tcp", changed(good, where, {"tcpSocket": {"port": ADMIN}}))
        refuse(f"a {probe} of the gateway by grpc", changed(good, where, {"grpc": {"port": ADMIN}}))
        refuse(f"a {probe} of the gateway at another port", changed(good, f"{where}/httpGet/port", 8080))
        headers = [{"name": "Host", "value": "attacker.example"}]
        refuse(f"a {probe} of the gateway with headers", changed(good, f"{where}/httpGet/httpHeaders", headers))
        refuse(f"a {probe} of the gateway of another host", changed(good, f"{where}/httpGet/host", "attacker.example"))
        refuse(f"a gateway without a {probe}", changed(good, where, None))
        admit(f"a {probe} of the gateway at another pace", changed(good, f"{where}/timeoutSeconds", 2))
    for index, name in enumerate(("redirect", "gateway")):
        own = f"spec/initContainers/{index}"
        added = {
            "lifecycle": {"preStop": {"exec": {"command": ["/x"]}}}, "workingDir": "/tmp", "tty": True, "stdin": True,
            "terminationMessagePath": "/etc/postern/policy/settings", "envFrom": [{"configMapRef": {"name": "mine"}}],
            "volumeDevices": [{"name": "block", "devicePath": "/dev/mine"}],
        }  # fmt: skip
        blocked = changed(good, "spec/volumes/+", {"name": "block", "persistentVolumeClaim": {"claimName": "mine"}})
        if name == "redirect":
            added |= {"ports": [{"containerPort": 80}], "env": [{"name": "PATH", "value": "/x"}]}
            del added["lifecycle"]
        for field, value in added.items():
            refuse(f"a {name} with {field}", changed(blocked, f"{own}/{field}", value))
        context = f"{own}/securityContext"
        for field, value in {
            "seccompProfile": None, "runAsGroup": 1000, "readOnlyRootFilesystem": False, "runAsNonRoot": None,
            "appArmorProfile": {"type": "Unconfined"}, "seLinuxOptions": {"type": "spc_t"},
        }.items():  # fmt: skip
            refuse(f"a {name} whose {field} is {value}", changed(good, f"{context}/{field}", value))
        refuse(f"a {name} without seccomp", changed(good, f"{context}/seccompProfile", {"type": "Unconfined"}))
        profile = {"type": "Localhost", "localhostProfile": "mine.json"}
        refuse(f"a {name} with a profile of one's own", changed(good, f"{context}/seccompProfile", profile))
        admit(f"what the API server adds to the {name}", changed(good, f"{own}/resizePolicy", RESIZED))
        token = {"name": "kube-api-access-x2k7p", "mountPath": TOKEN, "readOnly": True}
        held = changed(good, "spec/volumes/+", {"name": token["name"], "projected": {"sources": []}})
        admit(f"a token in the {name}", changed(held, f"{own}/volumeMounts/+", token))
        refuse(f"another volume there in the {name}", changed(mine, f"{own}/volumeMounts/+", token | {"name": "mine"}))
    refuse("a gateway with a port of the node's", changed(good, "spec/initContainers/1/ports/0/hostPort", 443))
    refuse("a gateway with another port", changed(good, "spec/initContainers/1/ports/+", {"containerPort": 80}))
    hooked = {"postStart": {"sleep": {"seconds": 1}}}
    refuse("a gateway with a hook", changed(good, "spec/initContainers/1/lifecycle", hooked))
    traced = changed(good, "spec/initContainers/1/env/+", {"name": TRACES["name"], "valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}})
    refuse("a variable of the chart's from elsewhere", traced)
    volumes_of_ours(checks, good)
    roots_of_agents(checks, good, mine)


def volumes_of_ours(checks, good):
    refuse = functools.partial(create, checks, "postern-shape")
    names = [volume["name"] for volume in good["spec"]["volumes"]]
    items = f"spec/volumes/{names.index('postern-podinfo')}/downwardAPI/items"
    other = {"path": "labels", "fieldRef": {"fieldPath": "metadata.annotations"}}
    refuse("labels out of annotations", changed(good, f"{items}/0", other))
    refuse("labels out of one annotation", changed(good, f"{items}/0/fieldRef/fieldPath", "metadata.annotations['mine']"))
    refuse("labels alone", changed(good, f"{items}/1", None))
    refuse("a third file beside the labels", changed(good, f"{items}/+", {"path": "more", "fieldRef": {"fieldPath": "metadata.name"}}))
    for name, source, key in (
        ("postern-policy", "configMap", "settings"),
        ("postern-ca", "secret", "roots.pem"),
        ("postern-credentials", "secret", "mine"),
    ):
        where = f"spec/volumes/{names.index(name)}"
        refuse(f"{name} that may be missing", changed(good, f"{where}/{source}/optional", True))
        refuse(f"{name} with keys of one's choice", changed(good, f"{where}/{source}/items", [{"key": key, "path": "settings"}]))
        refuse(f"{name} that is empty", changed(good, where, {"name": name, "emptyDir": {}}))
    on_disk = f"spec/volumes/{names.index('postern-run')}"
    refuse("postern-run on the node's disk", changed(good, f"{on_disk}/emptyDir/medium", None))
    refuse("postern-run that others mount too", changed(good, on_disk, {"name": "postern-run", "persistentVolumeClaim": {"claimName": "mine"}}))
    refuse("another volume of such a name", changed(good, "spec/volumes/+", {"name": "postern-mine", "emptyDir": {}}))
    create(
        checks,
        None,
        "another mode and size",
        changed(changed(good, f"{on_disk}/emptyDir/sizeLimit", "64Mi"), "spec/volumes/0/configMap/defaultMode", 0o440),
    )


def roots_of_agents(checks, good, mine):
    """A file of an agent's CA is one that this agent can read, and that nobody of the pod can write."""
    refuse = functools.partial(create, checks, "postern-shape")
    rooted, last = with_own_roots(good), "spec/initContainers/1/volumeMounts/9"
    for what, field, value in (
        ("that the gateway could write", "readOnly", None), ("of a whole volume", "subPath", None),
        ("of a volume that the agent has not", "name", "mine"), ("of a container that is not there", "mountPath", "/etc/postern/own-roots/other/SSL_CERT_FILE.pem"),
        ("under another name", "mountPath", "/etc/postern/own-roots/agent/run.sh"), ("that is spread", "mountPropagation", "HostToContainer"),
    ):  # fmt: skip
        pod = changed(rooted, "spec/volumes/+", mine["spec"]["volumes"][-1])
        refuse(f"a CA {what}", changed(pod, f"{last}/{field}", value))
    volume = len(rooted["spec"]["volumes"]) - 1
    refuse("a CA that an agent can write", changed(rooted, f"spec/volumes/{volume}", {"name": "corporate", "emptyDir": {}}))
    claimed = changed(rooted, f"spec/volumes/{volume}", {"name": "corporate", "persistentVolumeClaim": {"claimName": "mine", "readOnly": True}})
    create(checks, None, "a CA of a claim that is mounted read-only", claimed)
    written = changed(claimed, "spec/containers/0/volumeMounts/1/readOnly", False)
    refuse("a CA of a claim that is mounted to write", written)


def containers(checks):
    """Every other container is held to what the redirect stands on (threats A9, A10, A12, A25)."""
    good = guarded(image())
    refuse = functools.partial(create, checks, "postern-containers")
    admit = functools.partial(create, checks, None)
    context = "spec/containers/0/securityContext"
    free = changed(changed(good, f"{context}/allowPrivilegeEscalation", True), f"{context}/privileged", True)
    refuse("a privileged container", free)
    refuse("allowPrivilegeEscalation", changed(good, f"{context}/allowPrivilegeEscalation", True))
    refuse("allowPrivilegeEscalation left out", changed(good, f"{context}/allowPrivilegeEscalation", None))
    refuse("capabilities that are not dropped", changed(good, f"{context}/capabilities", {}))
    for capability in ("NET_ADMIN", "NET_RAW", "SYS_ADMIN", "SYS_PTRACE", "SETUID", "SETGID", "BPF", "ALL"):
        refuse(f"the capability {capability}", changed(good, f"{context}/capabilities/add", [capability]))
    admit("CHOWN and KILL as root", changed(changed(good, f"{context}/capabilities/add", ["CHOWN", "KILL"]), f"{context}/runAsUser", 0))
    refuse("seccomp Unconfined", changed(good, f"{context}/seccompProfile/type", "Unconfined"))
    refuse("seccomp left out", changed(good, f"{context}/seccompProfile", None))
    admit(
        "seccomp of the pod",
        changed(changed(good, f"{context}/seccompProfile", None), "spec/securityContext", {"seccompProfile": {"type": "RuntimeDefault"}}),
    )
    refuse("AppArmor Unconfined", changed(good, f"{context}/appArmorProfile", {"type": "Unconfined"}))
    refuse("the gateway's UID", changed(good, f"{context}/runAsUser", UID))
    refuse("the gateway's UID for the whole pod", changed(good, "spec/securityContext", {"runAsUser": UID}))
    admit("the UID beside it", changed(good, f"{context}/runAsUser", UID + 1))
    setup = {"name": "setup", "image": "registry.example/setup:1", "securityContext": LIBRARY}
    admit("an init container behind the gateway", changed(good, "spec/initContainers/+", setup))
    refuse(
        "the gateway's UID in an init container", changed(good, "spec/initContainers/+", setup | {"securityContext": LIBRARY | {"runAsUser": UID}})
    )
    ledger = {"name": "postern-ledger", "mountPath": "/x", "readOnly": True}
    refuse("the gateway's ledger mounted", changed(good, "spec/containers/0/volumeMounts/+", ledger))
    refuse("the gateway's directory mounted", changed(good, "spec/containers/0/volumeMounts/+", {"name": "postern-run", "mountPath": "/x"}))
    refuse("certificates mounted to write", changed(good, "spec/containers/0/volumeMounts/0/readOnly", False))
    refuse("an unsafe sysctl", changed(good, "spec/securityContext", {"sysctls": [{"name": "net.ipv4.conf.all.route_localnet", "value": "1"}]}))
    for path in ("/", "/var/run", HOST_PATH + "-other", "/var/lib/kubelet", HOST_PATH + "//one", HOST_PATH + "/./one"):
        refuse(f"hostPath {path}", changed(good, "spec/volumes/+", {"name": "node", "hostPath": {"path": path}}))
    admit("a hostPath that is listed", changed(good, "spec/volumes/+", {"name": "node", "hostPath": {"path": HOST_PATH + "/one"}}))
    port = {"containerPort": 9443, "hostPort": 443}
    refuse("a container with a port of the node's", changed(good, "spec/containers/0/ports", [port]))
    for kind in ("httpGet", "tcpSocket"):
        action = {kind: {"host": "attacker.example", "port": 80, **({"path": "/readyz"} if kind == "httpGet" else {})}}
        for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
            refuse(f"a {probe} ({kind}) of another host", changed(good, f"spec/containers/0/{probe}", action))
        for hook in ("postStart", "preStop"):
            refuse(f"a {hook} ({kind}) of another host", changed(good, "spec/containers/0/lifecycle", {hook: action}))
    admit("a probe of the pod itself", changed(good, "spec/containers/0/livenessProbe", {"tcpSocket": {"port": 80}}))
    for field in ("user", "role"):
        refuse(f"SELinux' {field}", changed(good, f"{context}/seLinuxOptions", {field: "sysadm"}))
        refuse(f"SELinux' {field} for the pod", changed(good, "spec/securityContext", {"seLinuxOptions": {field: "sysadm"}}))
    refuse("SELinux' type for the pod", changed(good, "spec/securityContext", {"seLinuxOptions": {"type": "spc_t"}}))
    for profile in ("seccompProfile", "appArmorProfile"):
        unconfined = {profile: {"type": "Unconfined"}}
        refuse(f"{profile} Unconfined for the pod", changed(good, "spec/securityContext", unconfined))
    old = "metadata/annotations/container.apparmor.security.beta.kubernetes.io~1agent"
    refuse("AppArmor Unconfined by annotation", changed(good, old, "unconfined"))
    own_servers = {"dnsPolicy": "None", "dnsConfig": {"nameservers": ["203.0.113.1"]}}
    refuse("a name server of one's own", good | {"spec": good["spec"] | own_servers})
    admit("search domains of one's own", changed(good, "spec/dnsConfig", {"searches": ["corp.example"]}))
    inline = {"name": "inline", "csi": {"driver": "nfs.csi.k8s.io", "volumeAttributes": {"server": "attacker.example"}}}
    refuse("an inline volume of any driver", changed(good, "spec/volumes/+", inline))
    admit("one of certificates", changed(good, "spec/volumes/+", inline | {"csi": {"driver": "csi.cert-manager.io", "readOnly": True}}))
    refuse("a volume that the node mounts", changed(good, "spec/volumes/+", {"name": "share", "nfs": {"server": "nfs.example", "path": "/"}}))


# Kinds of volumes that name a Secret, with what each asks for besides; None is where its name stands.
BY_A_DRIVER = {
    "csi": {"driver": "secrets-store.csi.k8s.io", "nodePublishSecretRef": {"name": None}},
    "flexVolume": {"driver": "example/driver", "secretRef": {"name": None}},
    "azureFile": {"shareName": "share", "secretName": None},
    "cephfs": {"monitors": ["192.0.2.1"], "secretRef": {"name": None}},
    "cinder": {"volumeID": "volume", "secretRef": {"name": None}},
    "iscsi": {"targetPortal": "192.0.2.1", "iqn": "iqn.2001-04.com.example:a", "lun": 0, "secretRef": {"name": None}},
    "rbd": {"monitors": ["192.0.2.1"], "image": "image", "secretRef": {"name": None}},
    "scaleIO": {"gateway": "https://gateway.example", "system": "system", "volumeName": "volume", "secretRef": {"name": None}},
    "storageos": {"volumeName": "volume", "secretRef": {"name": None}},
}


def with_secret(source, name):
    named_there = lambda value: {"name": name} if isinstance(value, dict) else name
    return {key: named_there(value) if value in (None, {"name": None}) else value for key, value in source.items()}


def secrets(checks):
    """The gateway's Secrets are read by the gateway alone, wherever they are (threats H7, B16)."""
    refuse = functools.partial(create, checks, "postern-secrets")
    admit = functools.partial(create, checks, None)
    for namespace in (OTHER, "kube-system"):
        for name in ("postern-ca", "postern-credentials"):
            mounts, variable = (mounting({"secret": {"secretName": name}}), {"secretKeyRef": {"name": name, "key": "ca-key.pem"}})
            refuse(f"{name} mounted in {namespace}", mounts, namespace)
            refuse(f"{name} projected", mounting({"projected": {"sources": [{"secret": {"name": name}}]}}), namespace)
            refuse(f"{name} in a variable", changed(plain(), "spec/containers/0/env", [{"name": "KEY", "valueFrom": variable}]), namespace)
            refuse(f"{name} in all variables", changed(plain(), "spec/containers/0/envFrom", [{"secretRef": {"name": name}}]), namespace)
            first = changed(mounts, "spec/initContainers", mounts["spec"]["containers"])
            refuse(f"{name} in an init container", changed(first, "spec/initContainers/0/name", "first"), namespace)
            for kind, source in BY_A_DRIVER.items():
                handed = changed(plain(), "spec/volumes", [{"name": "stolen", kind: with_secret(source, name)}])
                refuse(f"{name} given to {kind} in {namespace}", handed, namespace)
            refuse(f"{name} to pull images", changed(plain(), "spec/imagePullSecrets", [{"name": name}]), namespace)
    refuse(
        "the gateway's own Secret under another name",
        changed(guarded(image()), "spec/volumes/+", {"name": "mine", "secret": {"secretName": "postern-ca"}}),
    )
    for kind, source in BY_A_DRIVER.items():
        other = changed(plain(), "spec/volumes", [{"name": "other", kind: with_secret(source, "mine")}])
        admit(f"another Secret for {kind}", other, OTHER)
    admit("another Secret, mounted", mounting({"secret": {"secretName": "mine"}}), OTHER)
    admit("another Secret, in variables", changed(plain(), "spec/containers/0/envFrom", [{"secretRef": {"name": "mine"}}]), OTHER)
    good = guarded(image())
    # In kube-system, where the other policies do not hold, so that this one alone is seen.
    admit("the gateway", good, "kube-system")
    refuse("the gateway's name without its image", changed(good, "spec/initContainers/1/image", "registry.example/evil:1"), "kube-system")
    stolen = changed(good, "spec/containers/0/volumeMounts/+", {"name": "postern-ca", "mountPath": "/x"})
    refuse("the gateway's image without its name", changed(stolen, "spec/containers/0/image", image()), "kube-system")


def running(checks):
    """No change of a running pod loosens it (threats A13, H14)."""
    pod = at(LABELLED, "pods", "running")
    checks.admitted("an injected pod that stays", "POST", at(LABELLED, "pods"), guarded(image(), "running"))
    for name in ("postern-redirect", "postern-gateway"):
        body = {"spec": {"initContainers": [{"name": name, "image": "registry.example/evil:1"}]}}
        checks.refused("postern-images", f"another image for {name}", "PATCH", pod, body, STRATEGIC)
    body = {"spec": {"containers": [{"name": "agent", "image": "registry.example/agent:2"}]}}
    checks.refused("postern-images", "another image for an agent of any user", "PATCH", pod, body, STRATEGIC)
    named_user = changed(guarded(image(), "of-a-user"), "spec/containers/0/securityContext/runAsUser", 1000)
    checks.admitted("an injected pod whose agent has a user", "POST", at(LABELLED, "pods"), named_user)
    checks.admitted("another image for it", "PATCH", at(LABELLED, "pods", "of-a-user"), body, STRATEGIC)
    for what, more in (("the operator's label taken away", ""), ("the same through its status", "/status")):
        checks.refused(
            "postern-images", what, "PATCH", at(LABELLED, "pods", "running", more), {"metadata": {"labels": {"postern.dev/injected": None}}}, MERGE
        )
    checks.admitted("another label", "PATCH", pod, {"metadata": {"labels": {"team": "a"}}}, MERGE)
    checks.admitted("a pod without a gateway elsewhere", "POST", at(OTHER, "pods"), plain("bare"))
    bare, pretends = at(OTHER, "pods", "bare"), {"metadata": {"labels": {"postern.dev/injected": "true"}}}
    checks.refused("postern-images", "a pod without a gateway that pretends to have one", "PATCH", bare, pretends, MERGE)
    checks.admitted("another label of it", "PATCH", bare, {"metadata": {"labels": {"team": "a"}}}, MERGE)
    refuse = functools.partial(attach, checks, "postern-ephemeral")
    context = ephemeral()["securityContext"]
    attach(checks, None, "an ephemeral container under the same rules", ephemeral())
    refuse("one without any rules (kubectl debug)", ephemeral(securityContext={}))
    refuse("one that may trace (--profile=general)", ephemeral(securityContext=context | {"capabilities": {"drop": ["ALL"], "add": ["SYS_PTRACE"]}}))
    refuse("one that is privileged", ephemeral(securityContext={"privileged": True}))
    refuse("one with NET_ADMIN", ephemeral(securityContext=context | {"capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN"]}}))
    refuse("one with the gateway's UID", ephemeral(securityContext=context | {"runAsUser": UID}))
    refuse("one of its image's user", ephemeral(securityContext=LIBRARY))
    whole = changed(guarded(image(), "of-one-user"), "spec/securityContext", {"runAsUser": 1000})
    checks.admitted("a pod of one user", "POST", at(LABELLED, "pods"), whole)
    attach(checks, None, "one that says no user there", ephemeral(securityContext=LIBRARY), pod="of-one-user")
    refuse("one among the gateway's processes", ephemeral(targetContainerName="postern-gateway"))
    refuse("one with a name of Postern's", ephemeral(name="postern-debug"))
    refuse("one with the gateway's directory", ephemeral(volumeMounts=[{"name": "postern-run", "mountPath": "/x"}]))
    checks.admitted("an injected pod where no other policy holds", "POST", at("kube-system", "pods"), guarded(image(), "running"))
    attach(checks, "postern-secrets", "one with the CA", ephemeral(volumeMounts=[{"name": "postern-ca", "mountPath": "/x"}]), "kube-system")
    attach(checks, "postern-secrets", "one with the CA in a variable", ephemeral(envFrom=[{"secretRef": {"name": "postern-ca"}}]))
    checks.admitted("a plain pod elsewhere", "POST", at(OTHER, "pods"), plain("running"))
    attach(checks, None, "any ephemeral container there", {"name": "debugger", "image": "registry.example/tools:1"}, OTHER)
    attach(checks, "postern-secrets", "one with the CA there", ephemeral(envFrom=[{"secretRef": {"name": "postern-ca"}}]), OTHER)


def connections(checks):
    """Nobody enters the gateway, or the pod behind it (threat H14)."""
    for namespace in (LABELLED, OTHER):
        pod = at(namespace, "pods", "running")
        for way in ("exec", "attach"):
            command = "&command=ls" if way == "exec" else ""
            for name in ("postern-gateway", "postern-redirect"):
                checks.refused("postern-exec", f"{way} into {name}", "POST", f"{pod}/{way}?container={name}&stdout=true{command}")
            checks.admitted(f"{way} into the agent", "POST", f"{pod}/{way}?container=agent&stdout=true{command}")
    checks.refused("postern-exec", "port-forward in a labelled namespace", "POST", at(LABELLED, "pods", "running", "/portforward?ports=8080"))
    checks.admitted("port-forward elsewhere", "POST", at(OTHER, "pods", "running", "/portforward?ports=8080"))


def users(checks):
    """No image has the gateway's UID as its `USER`: Postern draws it, or every container names its user (threats A23, H15)."""
    drawn, context = guarded(image()), "spec/containers/0/securityContext"
    refuse = functools.partial(create, checks, "postern-containers")
    admit = functools.partial(create, checks, None)
    chosen = changed(drawn, LABEL, None)
    setup = {"name": "setup", "image": "registry.example/setup:1", "securityContext": LIBRARY}

    def each_named(pod):
        return changed(pod, f"{context}/runAsUser", 1000)

    for namespace in (LABELLED, OTHER):
        refuse("an image's user beside a UID that its author chose", chosen, namespace, words="itself chose the UID")
        refuse("one of two", changed(each_named(chosen), "spec/initContainers/+", setup), namespace)
        admit("a UID that its author chose, and every user named", each_named(chosen), namespace)
        admit("the same for the whole pod", changed(chosen, "spec/securityContext", {"runAsUser": 1000}), namespace)
        admit("an image's user beside a UID that Postern drew", drawn, namespace)
    refuse("another value of the label", changed(drawn, LABEL, "chosen"))
    few = changed(drawn, "spec/hostUsers", False)
    refuse("an image's user among few", few, words="hostUsers")
    admit("a named one among few", each_named(few))
    required_users(checks, drawn, each_named(drawn))
    believed(checks, drawn, each_named(chosen))


def required_users(checks, drawn, named_user):
    """The namespace may demand it of all."""
    key, path = "postern.dev/require-run-as-user", f"/api/v1/namespaces/{LABELLED}"
    for part in ("labels", "annotations"):
        checks.api.must("PATCH", path, {"metadata": {part: {key: "true"}}}, MERGE)
        ask = ("POST", at(LABELLED, "pods", more="?dryRun=All"), drawn)
        holds = becomes(lambda: "require-run-as-user" in said(checks.api.ask(*ask)[1]), PATIENCE)
        checks.expect(holds, f"a namespace whose {part} demand users refuses an image's")
        create(checks, None, "a named user there", named_user)
        checks.api.must("PATCH", path, {"metadata": {part: {key: None}}}, MERGE)
        checks.expect(becomes(lambda: checks.api.ask(*ask)[0] == 201, PATIENCE), f"and no more without those {part}")


def believed(checks, drawn, named_user):
    """The label that says the UID was drawn counts only where Postern's webhook was asked."""
    ask = ("POST", at(LABELLED, "pods", more="?dryRun=All"), drawn)
    refused = lambda: is_refused("postern-drawn", *checks.api.ask(*ask))
    path = "/webhooks/0/failurePolicy"
    for value, holds in (("Ignore", refused), ("Fail", lambda: checks.api.ask(*ask)[0] == 201)):
        change = [{"op": "replace", "path": path, "value": value}]
        checks.api.must("PATCH", hook_path(), change, "application/json-patch+json")
        checks.expect(becomes(holds, PATIENCE), f"a webhook with failurePolicy {value} is {'' if value == 'Fail' else 'not '}believed")
    checks.api.must("DELETE", hook_path())
    checks.expect(becomes(refused, PATIENCE), "without the webhook's configuration the label is refused")
    create(checks, None, "a pod without the label whose users are named", named_user)
    checks.admitted("a plain pod elsewhere", "POST", at(OTHER, "pods", more="?dryRun=All"), plain())
    checks.api.must("POST", hook_path().rpartition("/")[0], configuration("Mutating"))
    checks.expect(becomes(lambda: checks.api.ask(*ask)[0] == 201, PATIENCE), "and believed again with it")


def stolen_token(checks):
    """A stolen token of the operator allows what the operator does, and little more (threat H16)."""
    refuse = functools.partial(checks.refused, "postern-operator", as_user=OPERATOR)
    admit = functools.partial(checks.admitted, as_user=OPERATOR)
    json_patch, dry = "application/json-patch+json", "?dryRun=All"
    for kind in ("mutating", "validating"):
        path = hook_path(kind)
        change = lambda where, value, op="add": [{"op": op, "path": where, "value": value}]
        bundle = change("/webhooks/1/clientConfig/caBundle", BUNDLE)
        becomes(lambda path=path, bundle=bundle: checks.api.ask("PATCH", path, bundle, json_patch, as_user=OPERATOR)[0] == 200, PATIENCE)
        admit(f"caBundle of a {kind} webhook", "PATCH", path, bundle, json_patch)
        admit("all of them", "PATCH", path, bundle + change("/webhooks/0/clientConfig/caBundle", BUNDLE), json_patch)
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["secrets"]}
        service = {"name": "mine", "namespace": OTHER, "path": "/", "port": 443}
        for what, where, value in (
            ("rules", "/webhooks/0/rules/-", rule), ("another server", "/webhooks/0/clientConfig/service", service),
            ("another path", "/webhooks/1/clientConfig/service/path", "/other"), ("failurePolicy", "/webhooks/0/failurePolicy", "Ignore"),
            ("whom it asks about", "/webhooks/0/objectSelector", {}), ("conditions", "/webhooks/0/matchConditions", [{"name": "a", "expression": "false"}]),
            ("namespaces", "/webhooks/0/namespaceSelector", {"matchLabels": {"a": "b"}}), ("its name", "/webhooks/0/name", "other.pods.postern.dev"),
            ("how long it may take", "/webhooks/0/timeoutSeconds", 1), ("a label", "/metadata/labels", {"a": "b"}),
            ("an annotation", "/metadata/annotations", {"cert-manager.io/inject-ca-from": "a/b"}), ("a finalizer", "/metadata/finalizers", ["example.com/held"]),
        ):  # fmt: skip
            refuse(f"{what} of the {kind} webhooks", "PATCH", path, change(where, value), json_patch)
        refuse(f"one {kind} webhook less", "PATCH", path, [{"op": "remove", "path": "/webhooks/1"}], json_patch)
        more = configuration(kind.capitalize())["webhooks"][0] | {"name": "more.pods.postern.dev"}
        refuse(f"one {kind} webhook more", "PATCH", path, change("/webhooks/-", more), json_patch)
        checks.admitted("the chart changes all of it", "PATCH", path + dry, change("/webhooks/0/failurePolicy", "Ignore"), json_patch)
    for name, kind, right in (
        ("postern-root-ca", "kubernetes.io/tls", True), ("postern-webhook-tls", "kubernetes.io/tls", True),
        ("mine", "kubernetes.io/tls", False), ("postern-root-ca", "Opaque", False), ("mine", "kubernetes.io/service-account-token", False),
    ):  # fmt: skip
        pair = {"tls.crt": "", "tls.key": ""} if kind == "kubernetes.io/tls" else {}
        secret = named(name, "secrets", type=kind, data=pair)
        secret["metadata"]["annotations"] = {"kubernetes.io/service-account.name": "default"}
        request = (f"Secret {name} of type {kind} beside the operator", "POST", at(SYSTEM, "secrets", more=dry), secret)
        admit(*request) if right else refuse(*request)
    statuses(checks, refuse, admit)


def statuses(checks, refuse, admit):
    """Of pods it stamps those that are injected and deletes those that are guarded."""
    running, elsewhere = at(LABELLED, "pods", "probed"), at(OTHER, "pods", "probed")
    for path in (running, elsewhere):
        stamp = {"metadata": {"annotations": {"postern.dev/policy-revision": "sha256:0"}}}
        admit("a stamp", "PATCH", f"{path}/status", stamp, MERGE)
        refuse("an address of a pod", "PATCH", f"{path}/status", {"status": {"podIP": "192.0.2.1", "podIPs": [{"ip": "192.0.2.1"}]}}, MERGE)
        for field, value in (("labels", {"app": "mine"}), ("annotations", {"example.com/mine": "1"}), ("finalizers", ["example.com/held"])):
            refuse(f"{field} of a pod", "PATCH", f"{path}/status", {"metadata": {field: value}}, MERGE)
        checks.admitted("a kubelet's status", "PATCH", f"{path}/status?dryRun=All", {"status": {"message": "it runs"}}, MERGE)
    admit("deletion of an injected pod", "DELETE", f"{running}?dryRun=All")
    refuse("deletion of another pod", "DELETE", f"{elsewhere}?dryRun=All")
    checks.admitted("its deletion by others", "DELETE", f"{elsewhere}?dryRun=All")


def pod_security(checks):
    """The redirect's NET_ADMIN wants a namespace at `privileged`; the policies above hold its other containers."""
    for level, right in (("restricted", False), ("baseline", False), ("privileged", True)):
        enforce = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": level}}}
        checks.api.must("PATCH", f"/api/v1/namespaces/{LABELLED}", enforce, MERGE)

        def judged(level=level, right=right):
            """What is expected; the API server remembers the label of before for a moment."""
            status, answer = checks.api.ask("POST", at(LABELLED, "pods", more="?dryRun=All"), guarded(image()))
            return status == 201 if right else status == 403 and f'violates PodSecurity "{level}' in said(answer)

        what = f"Pod Security {level} {'admits' if right else 'refuses'} an injected pod"
        checks.expect(becomes(judged, PATIENCE), what, f"not within {PATIENCE} s")


def results(checks):
    """Kept tool results: the gateway writes them, agents read them, and nothing else of the volume is anybody's (threat O2)."""
    good = keeping_results(guarded(image()))
    refuse, admit = functools.partial(create, checks, "postern-shape"), functools.partial(create, checks, None)
    refuse("a volume for tool results where none are kept", good)
    apply(rendered("gateway.evidence.enabled=true"))
    asked = lambda pod: checks.api.ask("POST", at(LABELLED, "pods", more="?dryRun=All"), pod)
    knows = lambda: is_refused("postern-shape", *asked(guarded(image()))) and asked(good)[0] < 300
    if not becomes(knows, PATIENCE):
        raise RuntimeError(f"after {PATIENCE} s the API server still does not hold to the policies of kept tool results")
    admit("a pod that keeps tool results", good)
    refuse("a pod without a volume for them", guarded(image()))
    gateway, volume = "spec/initContainers/1", len(good["spec"]["volumes"]) - 1
    refuse("a gateway that does not mount it", changed(good, f"{gateway}/volumeMounts/9", None))
    refuse("a gateway that mounts it elsewhere", changed(good, f"{gateway}/volumeMounts/9/mountPath", "/var/lib/postern/evidence"))
    refuse("a gateway that is not told how large it may become", changed(good, f"{gateway}/env/{len(FIELDS) + 2}", None))
    refuse("a size that is none", changed(good, f"{gateway}/env/{len(FIELDS) + 2}/value", "all"))
    node = {"name": "postern-evidence", "hostPath": {"path": HOST_PATH}}
    refuse("tool results on the node", changed(good, f"spec/volumes/{volume}", node))
    refuse = functools.partial(create, checks, "postern-containers")
    agent = "spec/containers/0/volumeMounts/1"
    refuse("tool results that the agent writes", changed(good, f"{agent}/readOnly", None))
    refuse("tool results elsewhere", changed(good, f"{agent}/mountPath", "/results"))
    refuse("a part of the tool results", changed(good, f"{agent}/subPath", "x"))
    refuse("the ledger in their place", changed(good, f"{agent}/name", "postern-ledger"))


def bounded(**metadata):
    """A plain pod whose container is held to what a guarded one's is. Of several policies that refuse a request the API
    server names any: each is asked what it alone refuses."""
    return changed(plain(**metadata), "spec/containers/0/securityContext", LIBRARY | {"runAsUser": 1000})


def create(checks, policy, what, pod, namespace=LABELLED, words=""):
    """Asks for a pod without storing it."""
    request = ("POST", at(namespace, "pods", more="?dryRun=All"), pod)
    if policy is None:
        return checks.admitted(what, *request)
    return checks.refused(policy, what, *request, words=words)


def attach(checks, policy, what, container, namespace=LABELLED, pod="running"):
    """Asks for an ephemeral container without storing it."""
    body = {"spec": {"ephemeralContainers": [container]}}
    request = ("PATCH", at(namespace, "pods", pod, "/ephemeralcontainers?dryRun=All"), body, STRATEGIC)
    if policy is None:
        return checks.admitted(what, *request)
    return checks.refused(policy, what, *request)


def arguments(pod, *more):
    args = pod["spec"]["initContainers"][0]["args"]
    return changed(pod, "spec/initContainers/0/args", [*args, *(argument for argument in more if argument)])


def with_own_roots(pod):
    pod = changed(pod, "spec/volumes/+", {"name": "corporate", "configMap": {"name": "corporate"}})
    seen = {"name": "corporate", "mountPath": "/etc/corporate", "readOnly": True}
    pod = changed(pod, "spec/containers/0/volumeMounts/+", seen)
    mount = {"name": "corporate", "mountPath": "/etc/postern/own-roots/agent/SSL_CERT_FILE.pem", "subPath": "ca.pem", "readOnly": True}
    return changed(pod, "spec/initContainers/1/volumeMounts/+", mount)


def mounting(source):
    pod = changed(plain(), "spec/volumes", [{"name": "stolen", **source}])
    return changed(pod, "spec/containers/0/volumeMounts", [{"name": "stolen", "mountPath": "/stolen"}])
