"""The users' manifests: namespaces, policies, secrets and pods of agents."""

import images

NAMESPACE, OTHER = "agents", "elsewhere"
# What the provider must see and no agent may.
KEY, NEXT_KEY = "sk-ant-real-3f9e2a", "sk-ant-next-8c41d7"
PLACEHOLDER = "sk-ant-postern-anthropic"
ALLOWED, FORBIDDEN, UNNAMED, LATER, LLM = (
    "api.example.com",
    "forbidden.example.com",
    "unnamed.example.net",
    "later.example.com",
    "api.anthropic.com",
)
CAPABILITIES = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE"]
DECLARED, UNDECLARED = 8080, 8081
# Serves the declared port for kubelet's probe, and an undeclared one that nobody may reach.
SERVE = f"""
trap 'exit 0' TERM
for port in {DECLARED} {UNDECLARED}; do python3 -m http.server --bind :: $port >/dev/null 2>&1 & done
wait
"""
IDLE = "trap 'exit 0' TERM; sleep infinity & wait"
# What an init container of the agent's sees: it runs before the agent, and is guarded already.
PREPARE = """
curl --silent --max-time 5 --output /dev/null https://10.99.0.66/ && echo got out
curl --silent --show-error --verbose --max-time 20 https://api.example.com/prepare 2>&1 | grep -i 'issuer:' || echo no issuer
"""


def namespace(name, **labels):
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def injected_namespace(name=NAMESPACE):
    return namespace(name, **{"postern.dev/injection": "enabled", "pod-security.kubernetes.io/enforce": "privileged"})


def policy(name="coding-agents", namespace=NAMESPACE, **spec):
    return {"apiVersion": "postern.dev/v1alpha1", "kind": "EgressPolicy", "metadata": {"name": name, "namespace": namespace}, "spec": SPEC | spec}


def cluster_policy(name, **spec):
    return {"apiVersion": "postern.dev/v1alpha1", "kind": "ClusterEgressPolicy", "metadata": {"name": name}, "spec": spec}


def inspect(name, *hosts):
    return {"name": name, "hosts": list(hosts), "action": "Inspect"}


SPEC = {
    "podSelector": {},
    "destinations": [
        inspect("anthropic", LLM),
        inspect("api", ALLOWED),
        {"name": "forbidden", "hosts": [FORBIDDEN], "action": "Deny"},
    ],
    "tools": [{
        "name": "no-force-remove",
        "kind": "Shell",
        "action": "Deny",
        "when": {"any": [{"param": "command", "operator": "Matches", "values": [r"rm\s+-rf\s+/"]}]},
        "reason": "Dangerous shell command",
    }],
    "credentials": [{
        "name": "anthropic",
        "hosts": [LLM],
        "secretKeyRef": {"name": "anthropic", "key": "api-key"},
        "placeholder": PLACEHOLDER,
        "require": True,
    }],
}  # fmt: skip


def secret(key=KEY, namespace=NAMESPACE):
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "anthropic", "namespace": namespace}, "stringData": {"api-key": key}}


def container(name, command, **more):
    return {"name": name, "image": images.AGENT, "imagePullPolicy": "Never", "command": ["sh", "-c", command]} | more


def agent(name, namespace=NAMESPACE, annotations=None, labels=None, containers=None, **spec):
    """An agent's pod: one container as root, with a port that is declared and probed, and one of an ordinary user."""
    served = {"ports": [{"containerPort": DECLARED}], "readinessProbe": {"httpGet": {"path": "/", "port": DECLARED}, "periodSeconds": 1}}
    # All that an agent may ask for: what holds against it holds against those who ask for less.
    root = {"securityContext": {"capabilities": {"add": CAPABILITIES}}}
    both = [container("agent", SERVE, **served, **root), container("user", IDLE, securityContext={"runAsUser": 1000})]
    placeholders = {"postern.dev/placeholders": f"ANTHROPIC_API_KEY={PLACEHOLDER}"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {"app": name} | (labels or {}),
            "annotations": placeholders | (annotations or {}),
        },
        "spec": {"terminationGracePeriodSeconds": 2, "containers": containers or both} | spec,
    }


def idle(name, namespace=NAMESPACE, **more):
    """A pod with one container that does nothing."""
    return agent(name, namespace, containers=[container("agent", IDLE)], **more)


def job(name, command, namespace=NAMESPACE):
    template = {"spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 2, "containers": [container("agent", command)]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"backoffLimit": 0, "template": template},
    }


def deployment(name, namespace, replicas=1):
    labels = {"app": name}
    pod = {"metadata": {"labels": labels}, "spec": {"terminationGracePeriodSeconds": 2, "containers": [container("agent", IDLE)]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": pod}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": namespace}, "spec": spec}
