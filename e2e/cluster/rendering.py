"""Checks the rendered chart: over a matrix of values, against the oldest and the newest Kubernetes it supports.

Every object is validated strictly by PyPI's kubernetes-validate, which is installed into the cache where it is missing; the
objects of others (cert-manager, Prometheus, Postern's own) have no schema there and are looked at by hand below.
"""

import importlib
import json
import os
import site
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from checks import Checks
from steps import Step

ROOT_DIRECTORY = Path(__file__).parents[2]
CHART = ROOT_DIRECTORY / "charts" / "postern"
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "postern-e2e" / "python"
VALIDATE = "kubernetes-validate==1.37.0"
OLDEST, NEWEST = "1.33", "1.37"
NAMESPACE = "postern-system"
FOREIGN = ("cert-manager.io/", "monitoring.coreos.com/", "postern.dev/")

DIGEST = "sha256:" + "0123456789abcdef" * 4
ROOT = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
PULL = [{"name": "registry"}]
PEER = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}

MATRIX = {
    "defaults": {},
    "one replica": {"operator": {"replicas": 1}},
    "a CA that is given": {"ca": {"source": "Given", "secret": "company-root"}},
    "cert-manager": {"ca": {"source": "CertManager"}, "webhook": {"certificate": {"source": "CertManager"}}},
    "cert-manager's own issuers": {
        "ca": {"source": "CertManager", "certManager": {"issuerRef": {"name": "company", "kind": "ClusterIssuer"}}},
        "webhook": {"certificate": {"source": "CertManager", "issuerRef": {"name": "company", "kind": "ClusterIssuer"}}},
    },
    "monitors, rules and dashboards": {
        "monitoring": {
            kind: {"enabled": True, "labels": {"release": "prometheus"}} for kind in ("serviceMonitor", "podMonitor", "prometheusRule", "dashboards")
        }
    },
    "network policies": {
        "networkPolicy": {
            "operator": {"enabled": True},
            "agents": {"namespaces": ["agents", "more"], "scrapers": [PEER], "ingress": [{"ports": [{"port": 8080}]}]},
        }
    },
    "network policies without a way out": {"networkPolicy": {"agents": {"namespaces": ["agents"], "egress": []}}},
    "images by digest": {
        "operator": {"image": {"digest": DIGEST}},
        "gateway": {"image": {"tag": "1.2.3", "digest": DIGEST}, "formerImages": ["registry.example/old:1"]},
    },
    "dual stack, traced": {"gateway": {"dualStack": True, "env": [{"name": "OTEL_EXPORTER_OTLP_ENDPOINT", "value": "http://it's:4317"}]}},
    "a proxy, roots and ranges": {
        "gateway": {
            "upstream": {
                "proxy": {"url": "http://proxy.example:3128", "except": ["**.corp.example"]},
                "roots": ROOT,
                "denyAddresses": ["10.96.0.0/12", "fd00::/8"],
                "allowAddresses": ["127.0.0.0/8"],
                "hosts": {"api.anthropic.com": "10.0.0.7:8443"},
            },
            "listeners": {"dnsPool": "198.18.0.0/16", "reverse": [{"address": "127.0.0.1:15003", "upstream": "https://api.anthropic.com"}]},
            "limits": {"requestBodyBytes": "16MiB", "headerCount": 64},
            "timeouts": {"upstreamHead": "5m"},
            "settings": {"limits": {"celCost": 5000}},
        }
    },
    "everything about where the operator runs": {
        "operator": {
            "imagePullSecrets": PULL,
            "nodeSelector": {"kubernetes.io/os": "linux"},
            "tolerations": [{"operator": "Exists"}],
            "priorityClassName": "system-cluster-critical",
            "affinity": {"nodeAffinity": {}},
            "podLabels": {"team": "a"},
            "podAnnotations": {"note": "b"},
            "env": [{"name": "RUST_BACKTRACE", "value": "1"}],
        },
        "serviceAccount": {"create": False, "name": "mine", "annotations": {"a": "b"}},
        "tests": {"namespace": "trial", "imagePullSecrets": PULL},
    },
    "narrow rights": {
        "rbac": {"secretNamespaces": ["agents"], "aggregateToEdit": True},
        "injection": {"hostPaths": ["/var/lib/datasets"], "csiDrivers": ["nfs.csi.k8s.io"], "nameservers": ["169.254.20.10"]},
    },
    "what namespaces and pods may choose": {
        "gateway": {
            "canaryImages": ["registry.example/next:1"],
            "resources": {"requests": {"cpu": 0.5}, "limits": {"cpu": 2, "memory": 1073741824}},
            "resourceBounds": {"least": {}, "most": {"cpu": 4}},
        },
        "redirect": {"resourceBounds": {"most": {"memory": "128Mi"}}},
        "injection": {"logLevels": ["info", "debug"]},
        "rbac": {"secretNamespaces": ["agents"], "sourceNamespaces": ["keys"]},
    },
    "tool results that are kept": {"gateway": {"evidence": {"enabled": True, "maxAge": "1h", "maxBytes": "64MiB", "mcp": True}}},
    "without backstops": {"backstops": {"enabled": False}},
    "port-forward allowed": {"backstops": {"denyPortForward": False}, "webhook": {"excludedNamespaces": ["legacy"], "timeoutSeconds": 5}},
}

REFUSED = [
    ("an older Kubernetes", {}, "1.32", "needs Kubernetes 1.33 or later, where native sidecars are stable"),
    ("an unknown value", {"operator": {"replica": 3}}, NEWEST, "'replica' not allowed"),
    ("no replica", {"operator": {"replicas": 0}}, NEWEST, "/operator/replicas"),
    ("another source of the CA", {"ca": {"source": "Vault"}}, NEWEST, "/ca/source"),
    ("half a digest", {"gateway": {"image": {"digest": "sha256:12"}}}, NEWEST, "/gateway/image/digest"),
    ("a proxy by TLS", {"gateway": {"upstream": {"proxy": {"url": "https://proxy.example"}}}}, NEWEST, "/gateway/upstream/proxy/url"),
    ("a limit that does not exist", {"gateway": {"limits": {"requestBody": "1MiB"}}}, NEWEST, "'requestBody' not allowed"),
    ("a timeout without its unit", {"gateway": {"timeouts": {"sniff": "5"}}}, NEWEST, "/gateway/timeouts/sniff"),
    ("an age of tool results without its unit", {"gateway": {"evidence": {"maxAge": "1"}}}, NEWEST, "/gateway/evidence/maxAge"),
    ("a webhook that may take a minute", {"webhook": {"timeoutSeconds": 60}}, NEWEST, "/webhook/timeoutSeconds"),
    ("agents beside the operator", {"networkPolicy": {"agents": {"namespaces": [NAMESPACE]}}}, NEWEST, "agents do not run there"),
    ("a bound of a device", {"gateway": {"resourceBounds": {"most": {"gpu": 1}}}}, NEWEST, "invalid propertyName 'gpu'"),
    ("a level that is none", {"injection": {"logLevels": ["loud"]}}, NEWEST, "/injection/logLevels"),
    ("keys beside the root's", {"rbac": {"sourceNamespaces": [NAMESPACE]}}, NEWEST, "keep keys in another namespace"),
    ("a test beside the operator", {"tests": {"namespace": NAMESPACE}}, NEWEST, "whose pods are not injected"),
]


def steps():
    yield Step("what the chart renders", rendered)


def rendered(_stage, step):
    prepare()
    checks = Checks(step)
    lint(checks)
    written(checks)
    checks.expect(
        problems({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"prots": []}}, OLDEST), "a misspelt field is found"
    )
    for name, values in MATRIX.items():
        outputs = {version: template(values, version) for version in (OLDEST, NEWEST)}
        for version, (status, text) in outputs.items():
            checks.expect(status == 0, f"{name}: rendered for {version}", text)
        if all(status == 0 for status, _ in outputs.values()):
            look(checks, name, values, {version: objects(text) for version, (_, text) in outputs.items()})
    for name, values, version, words in REFUSED:
        status, text = template(values, version)
        checks.expect(status != 0 and words in text, f"refused: {name}", f"{status} {text}")


def written(checks):
    """The committed files are those that the chart renders now, and are valid."""
    with tempfile.NamedTemporaryFile() as file:
        subprocess.run([ROOT_DIRECTORY / "scripts" / "deploy.sh", file.name], check=True)
        fresh = Path(file.name).read_text()
    manifests = (ROOT_DIRECTORY / "deploy" / "postern.yaml").read_text()
    checks.expect(fresh == manifests, "deploy/postern.yaml is what scripts/deploy.sh writes")
    readme = [sys.executable, ROOT_DIRECTORY / "scripts" / "chart_readme.py", "--check"]
    checks.expect(subprocess.run(readme, check=False).returncode == 0, "the chart's README is what values.yaml says")
    demo = (ROOT_DIRECTORY / "deploy" / "demo-agent.yaml").read_text()
    for each in [each for each in [*objects(manifests), *objects(demo)] if not each["apiVersion"].startswith(FOREIGN)]:
        wrong = [problems(each, version) for version in (OLDEST, NEWEST)]
        checks.expect(wrong == [None, None], f"deploy/: {' '.join(identity(each))} is valid", wrong)


def prepare():
    """Makes importable what validates and reads YAML."""
    packages = CACHE / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    if not (packages / "kubernetes_validate").exists():
        venv.create(CACHE, with_pip=True)
        subprocess.run([CACHE / "bin/python", "-m", "pip", "install", "--quiet", VALIDATE], check=True)
    site.addsitedir(str(packages))


def lint(checks):
    result = helm("lint", CHART, "--strict", "--namespace", NAMESPACE)
    checks.expect(result.returncode == 0, "helm lint --strict", result.stdout + result.stderr)


def template(values, version):
    """Status, and the objects as YAML or what is wrong."""
    command = ("template", "postern", CHART, "--namespace", NAMESPACE, "--include-crds", "--kube-version", version, "--values", "-")
    result = helm(*command, input=json.dumps(values))
    return result.returncode, result.stdout if result.returncode == 0 else result.stderr


def helm(*arguments, **more):
    return subprocess.run(["helm", *arguments], capture_output=True, text=True, **more)


def objects(text):
    """The objects of a stream of YAML documents."""
    return [each for each in importlib.import_module("yaml").safe_load_all(text) if each]


def look(checks, name, values, rendered):
    for version, everything in rendered.items():
        known = [each for each in everything if not each["apiVersion"].startswith(FOREIGN)]
        wrong = list(filter(None, (problems(each, version) for each in known)))
        checks.expect(not wrong, f"{name}: {len(known)} objects are valid for {version}", wrong)
    everything = rendered[NEWEST]
    checks.expect(
        "caBundle" not in json.dumps([each for each in everything if each["kind"].endswith("WebhookConfiguration")]),
        f"{name}: no caBundle is rendered",
    )
    duplicates = {key for key in map(identity, everything) if [identity(each) for each in everything].count(key) > 1}
    checks.expect(not duplicates, f"{name}: no object is rendered twice", duplicates)
    unlabelled = [
        identity(each)
        for each in everything
        if each["kind"] != "CustomResourceDefinition" and "helm.sh/chart" not in each["metadata"].get("labels", {})
    ]
    checks.expect(not unlabelled, f"{name}: every object says which chart it is of", unlabelled)
    crds = [each["metadata"]["name"] for each in everything if each["kind"] == "CustomResourceDefinition"]
    shipped = sorted(each["metadata"]["name"] for path in (CHART / "crds").glob("*.yaml") for each in objects(path.read_text()))
    checks.expect(sorted(crds) == shipped, f"{name}: the CRDs are those of crds/", (crds, shipped))
    settings = next(each for each in everything if each["kind"] == "ConfigMap" and each["metadata"]["name"] == "postern-operator")
    follow(checks, name, values, everything, objects(settings["data"]["config.yaml"])[0])


def follow(checks, name, values, everything, settings):
    """The parts of the rendered chart fit each other."""
    kinds = {}
    for each in everything:
        kinds.setdefault(each["kind"], []).append(each)
    [deployment], [account] = kinds["Deployment"], [settings["serviceAccount"]]
    pod = deployment["spec"]["template"]["spec"]
    checks.expect(pod["serviceAccountName"] == account, f"{name}: the operator runs as who its settings name")
    replicas = values.get("operator", {}).get("replicas", 2)
    checks.expect(("PodDisruptionBudget" in kinds) == (replicas > 1), f"{name}: a disruption budget where there is more than one replica")
    gateway = objects(settings["gateway"]["settings"])[0]
    wanted = {"port": 15001} == gateway["listeners"]["transparent"] and gateway["interception"]["mode"] == "Required"
    checks.expect(
        wanted and {"fromEnv": "POSTERN_NODE_ADDRESSES"} in gateway["upstream"]["denyAddresses"], f"{name}: the gateway's settings", gateway
    )
    policies = {each["metadata"]["name"]: json.dumps(each) for each in kinds.get("ValidatingAdmissionPolicy", [])}
    images = settings["gateway"]["canaryImages"] + settings["gateway"]["formerImages"]
    admitted = not policies or all(any(image in policy for policy in policies.values()) for image in images)
    checks.expect(admitted, f"{name}: admission takes the images that annotations may name, and the former ones", images)
    bindings = {each["spec"]["policyName"] for each in kinds.get("ValidatingAdmissionPolicyBinding", [])}
    checks.expect(bindings == policies.keys(), f"{name}: every admission policy is bound", (bindings, list(policies)))
    if policies:
        image = settings["gateway"]["image"]
        checks.expect(
            all(image in policies[which] for which in ("postern-shape", "postern-secrets")),
            f"{name}: the policies admit the image that is injected",
            image,
        )
        checks.expect(f":{NAMESPACE}:{account}'" in policies["postern-owned"], f"{name}: the policies admit the operator's writes")
    given = settings["root"]["source"] == "Given"
    checks.expect(given == (values.get("ca", {}).get("source", "Generated") != "Generated"), f"{name}: who makes the root")
    if values.get("ca", {}).get("source") == "CertManager":
        made = {each["spec"]["secretName"]: each["spec"] for each in kinds["Certificate"]}
        root = made[settings["root"]["secret"]]
        checks.expect(root["isCA"] and root["privateKey"]["algorithm"] == "ECDSA", f"{name}: cert-manager makes a root", root)
        checks.expect(
            f"postern-webhook.{NAMESPACE}.svc" in made[settings["webhook"]["certificate"]]["dnsNames"],
            f"{name}: cert-manager makes the webhook's certificate",
        )


def problems(each, version):
    """Returns what is wrong with an object by the strict schemas of a version of Kubernetes."""
    kubernetes = importlib.import_module("kubernetes_validate")
    try:
        kubernetes.validate(each, version, strict=True)
    except (kubernetes.ValidationError, kubernetes.SchemaNotFoundError) as error:
        return f"{identity(each)}: {error}"
    return None


def identity(each):
    return each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]
