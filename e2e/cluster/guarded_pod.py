"""A pod as the operator's webhook makes it, with the image that the chart names by default."""

import copy

UID, ADMIN = 61234, 15090
DRAWN = "postern.dev/user-id"
READ = 0o444
SETTINGS, RUN = "/etc/postern/policy/settings", "/run/postern"
FIELDS = {
    "POSTERN_POD": "metadata.name",
    "POSTERN_NAMESPACE": "metadata.namespace",
    "POSTERN_SERVICE_ACCOUNT": "spec.serviceAccountName",
    "POSTERN_NODE": "spec.nodeName",
    "POSTERN_NODE_ADDRESSES": "status.hostIPs",
}
EVIDENCE = {"name": "POSTERN_EVIDENCE_BYTES", "value": str(256 << 20)}
LEDGER, ROOM = "/var/lib/postern", {"name": "POSTERN_LEDGER_BYTES", "value": str(256 << 20)}
LIBRARY = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"}}


def plain(name="agent", **metadata):
    """A pod that nobody has injected; nobody schedules it either."""
    container = {"name": "agent", "image": "registry.example/agent:1"}
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata},
        "spec": {"schedulerName": "nobody", "containers": [container]},
    }  # fmt: skip


def guarded(image, name="agent", **metadata):
    """The same after injection."""
    pod = plain(name, **metadata)
    pod["metadata"]["labels"] = {"postern.dev/injected": "true", DRAWN: "drawn"} | pod["metadata"].get("labels", {})
    pod["spec"]["containers"][0] |= {"securityContext": copy.deepcopy(LIBRARY), "volumeMounts": [mount("trust", "/run/postern-trust")]}
    pod["spec"]["initContainers"] = [redirect(image), gateway(image)]
    pod["spec"]["volumes"] = [
        {"name": "postern-policy", "configMap": {"name": "postern-policy", "defaultMode": READ}},
        *({"name": name, "secret": {"secretName": name, "defaultMode": READ}} for name in ("postern-ca", "postern-credentials")),
        {"name": "postern-podinfo", "downwardAPI": {"defaultMode": READ, "items": [field("labels"), field("annotations")]}},
        *({"name": name, "emptyDir": {"medium": "Memory", "sizeLimit": "32Mi"}} for name in ("postern-run", "postern-trust")),
        {"name": "postern-ledger", "emptyDir": {"sizeLimit": "320Mi"}},
    ]
    return pod


def keeping_results(pod):
    """The same where the chart's gateway.evidence is enabled."""
    pod = changed(pod, "spec/volumes/+", {"name": "postern-evidence", "emptyDir": {"sizeLimit": "320Mi"}})
    pod = changed(pod, "spec/containers/0/volumeMounts/+", mount("evidence", "/run/postern/evidence"))
    pod = changed(pod, "spec/initContainers/1/volumeMounts/+", {"name": "postern-evidence", "mountPath": "/var/lib/postern-evidence"})
    return changed(pod, "spec/initContainers/1/env/+", EVIDENCE)


def with_workspace(image, name="agent"):
    """The same with a companion that reads a volume of the agent's."""
    pod = guarded(image, name, annotations={"postern.dev/workspace": "work:/workspace"})
    socket = mount("workspace", "/run/postern-workspace")
    pod["spec"]["containers"][0]["volumeMounts"].append({"name": "work", "mountPath": "/workspace"})
    pod["spec"]["initContainers"][1]["volumeMounts"].append(socket)
    pod["spec"]["initContainers"].append(
        {
            **own_fields(image),
            "name": "postern-workspace",
            "args": ["workspace", "--root", "/workspace", "--socket", "/run/postern-workspace/workspace.sock", "--any-user"],
            "restartPolicy": "Always",
            "securityContext": own_context() | {"runAsUser": UID - 1, "runAsGroup": UID - 1, "runAsNonRoot": True},
            "volumeMounts": [{"name": "work", "mountPath": "/workspace", "readOnly": True}, {"name": "postern-workspace", "mountPath": "/run/postern-workspace"}],
        }
    )  # fmt: skip
    pod["spec"]["volumes"] += [{"name": "work", "emptyDir": {}}, {"name": "postern-workspace", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}]
    return pod


def redirect(image):
    context = own_context() | {"runAsUser": 0, "runAsGroup": 0, "runAsNonRoot": False}
    context["capabilities"] = {"drop": ["ALL"], "add": ["NET_ADMIN"]}
    return {
        **own_fields(image), "name": "postern-redirect", "args": ["redirect", "--uid", str(UID), "--config", SETTINGS, "--keep-names", RUN],
        "securityContext": context, "volumeMounts": [mount("policy", "/etc/postern/policy"), {"name": "postern-run", "mountPath": RUN}],
    }  # fmt: skip


def gateway(image):
    mounts = {"policy": "/etc/postern/policy", "ca": "/etc/postern/ca", "credentials": "/etc/postern/credentials", "podinfo": "/etc/podinfo"}
    written = [
        {"name": "postern-run", "mountPath": RUN},
        {"name": "postern-trust", "mountPath": "/run/postern-trust"},
        mount("run", "/etc/hosts") | {"subPath": "hosts"},
        mount("run", "/etc/resolv.conf") | {"subPath": "resolv.conf"},
        {"name": "postern-ledger", "mountPath": LEDGER},
    ]
    return {
        **own_fields(image), "name": "postern-gateway", "args": ["gateway", "--config", SETTINGS], "restartPolicy": "Always",
        "env": [{"name": "POSTERN_INTERCEPT", "value": "1"}, *(read(name, path) for name, path in FIELDS.items()), ROOM],
        "ports": [{"name": "postern-metrics", "containerPort": ADMIN, "protocol": "TCP"}],
        "livenessProbe": probe("/healthz", 20, 10, 6), "readinessProbe": probe("/readyz", 5, 2, 3),
        "startupProbe": probe("/readyz", 1, 1, 120),
        "securityContext": own_context() | {"runAsUser": UID, "runAsGroup": UID, "runAsNonRoot": True},
        "volumeMounts": [mount(name, path) for name, path in mounts.items()] + written,
    }  # fmt: skip


def own_fields(image):
    return {
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "64Mi"}},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def probe(path, period, timeout, failures):
    asked = {"path": path, "port": ADMIN, "scheme": "HTTP"}
    times = {"periodSeconds": period, "timeoutSeconds": timeout, "failureThreshold": failures, "successThreshold": 1}
    return {"httpGet": asked} | times


def own_context():
    return copy.deepcopy(LIBRARY) | {"privileged": False, "readOnlyRootFilesystem": True}


def mount(name, path):
    return {"name": f"postern-{name}", "mountPath": path, "readOnly": True}


def field(key):
    return {"path": key, "fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.{key}"}}


def read(name, path):
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def ephemeral(name="debugger", **more):
    """An ephemeral container that is held to what the others are."""
    context = copy.deepcopy(LIBRARY) | {"runAsUser": 0}
    return {"name": name, "image": "registry.example/tools:1", "securityContext": context} | more


def changed(pod, path, value):
    """A copy in which the part at `path` (keys, `~1` for a slash in one, and indices, or `+` behind a list) is another; None takes it away."""
    pod = copy.deepcopy(pod)
    *way, last = [int(step) if step.isdigit() else step.replace("~1", "/") for step in path.split("/")]
    part = pod
    for step in way:
        part = part.setdefault(step, {}) if isinstance(part, dict) else part[step]
    if last == "+":
        part.append(value)
    elif value is None:
        del part[last]
    else:
        part[last] = value
    return pod
