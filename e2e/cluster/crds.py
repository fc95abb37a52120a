"""The CustomResourceDefinitions on a real API server: what they take by themselves, and what they refuse in which words."""

import json
import os
import pathlib
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

from policies import BAD, GOOD, NAMESPACE, policy
from steps import Step
from waiting import PATIENCE, becomes

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEFINITIONS = ROOT / "charts/postern/crds"
KUBECTL = os.environ.get("KUBECTL", "kubectl")
FENCED = re.compile(r"^```yaml\n(apiVersion: postern\.dev/.*?)^```", re.MULTILINE | re.DOTALL)


def steps():
    yield Step("the definitions judge policies", judge)


def judge(_stage, step):
    for check in installed():
        step.check(*check)
    with ThreadPoolExecutor(4) as pool:
        checks = [*pool.map(refused, BAD), *pool.map(taken, GOOD), *pool.map(written, documents())]
    for check in [*checks, unknown(), metadata_is_bounded(), *shown()]:
        step.check(*check)


def kubectl(*arguments, given=None):
    """Exit status, standard output, standard error."""
    text = json.dumps(given) if isinstance(given, dict) else given
    done = subprocess.run([KUBECTL, *arguments], input=text, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


def tried(given):
    """Returns a policy as the API server would store it, or its error; nothing is stored."""
    status, out, err = kubectl("create", "--dry-run=server", "-o", "json", "-f", "-", given=given)
    return (json.loads(out), "") if status == 0 else (None, err)


def installed():
    """As a Helm install and a later kubectl apply do it, and without a complaint about structure or cost."""
    status, out, err = kubectl("apply", "--server-side", "--force-conflicts", "-f", str(DEFINITIONS))
    yield "the definitions are taken as they are generated", status == 0 and out.count("serverside-applied") == 2, out + err
    status, out, err = kubectl("apply", "-f", str(DEFINITIONS))
    yield "kubectl apply takes them too, however long they are", status == 0, out + err
    names = ["egresspolicies.postern.dev", "clusteregresspolicies.postern.dev"]
    status, out, err = kubectl("wait", "--for=condition=Established", f"--timeout={PATIENCE}s", *[f"crd/{name}" for name in names])
    yield "they are established", status == 0, out + err
    for name in names:
        _, out, err = kubectl("get", "crd", name, "-o", "json")
        conditions = json.loads(out)["status"]["conditions"]
        faults = [each for each in conditions if each["type"] == "NonStructuralSchema" or each["reason"].endswith("Violation")]
        yield f"{name} has a structural schema", not faults, str(faults)
    kubectl("create", "namespace", NAMESPACE)


def refused(case):
    name, given, message = case
    made, answer = tried(given)
    return f"refused: {name}", made is None and message in answer, answer or json.dumps(made)


def taken(case):
    """Taken, and not changed but for the one default."""
    name, given = case
    made, answer = tried(given)
    expected = {"enforcement": "Enforce"} | without_nulls(given["spec"])
    return f"taken as it is: {name}", made is not None and made["spec"] == expected, answer or json.dumps(made)


def without_nulls(value):
    if isinstance(value, dict):
        return {key: without_nulls(each) for key, each in value.items() if each is not None}
    return [without_nulls(each) for each in value] if isinstance(value, list) else value


def documents():
    """Every policy that the repository has as YAML: files, and the documentation's examples."""
    skipped = {"target", "node_modules", ".git"}
    for path in sorted([*ROOT.rglob("*.yaml"), *ROOT.rglob("*.md")]):
        name = path.relative_to(ROOT)
        if skipped & set(name.parts) or name.parts[0] == "charts":
            continue
        text = path.read_text()
        texts = FENCED.findall(text) if path.suffix == ".md" else re.split(r"^---$", text, flags=re.MULTILINE)
        for number, text in enumerate(texts):
            if re.search(r"^apiVersion: postern\.dev/", text, re.MULTILINE):
                yield f"{name}, {number + 1}", text


def written(document):
    """A policy of the repository is taken, or refused because its key is a laptop's."""
    name, text = document
    text = re.sub(r"(namespace: )[\w-]+", rf"\g<1>{NAMESPACE}", text)
    status, out, err = kubectl("create", "--dry-run=server", "-n", NAMESPACE, "-o", "name", "-f", "-", given=text)
    if re.search(r"from(Env|File):", text):
        return f"a laptop's key is refused in words: {name}", status != 0 and "`secretKeyRef: {name, key}`" in err, out + err
    return f"taken: {name}", status == 0, err


def unknown():
    """Never dropped in silence, also where a client does not ask for strict validation: either it is refused, or it
    reaches the webhook and the controller, which refuse it."""
    given = policy(destinations=[{"name": "a", "hosts": ["a.example"], "action": "Inspect", "endpoint": [{"path": "/x"}]}])
    status, out, err = kubectl("create", "--dry-run=server", "--validate=ignore", "-o", "json", "-f", "-", given=given)
    kept = status != 0 or "endpoint" in json.loads(out)["spec"]["destinations"][0]
    return "a field that is misspelt is not dropped", kept, out + err


def metadata_is_bounded():
    made, answer = tried(policy(name="a" * 239))
    return "refused: a name that names no file", made is None and "at most 238 characters" in answer, answer


def shown():
    """Checks how kubectl shows a policy and its status."""
    kubectl("delete", "egp", "shown", "-n", NAMESPACE, "--ignore-not-found")
    kubectl("create", "-f", "-", given=policy(name="shown"))
    now = "2026-01-01T00:00:00Z"
    conditions = [
        {"type": kind, "status": "True", "reason": "Tried", "message": "", "lastTransitionTime": now} for kind in ("Accepted", "Programmed")
    ]
    status = {"status": {"conditions": conditions, "selectedPods": 3, "enforcingPods": 2, "enforcing": "2/3", "revision": "sha256:1"}}
    code, out, err = kubectl("patch", "egp", "shown", "-n", NAMESPACE, "--subresource=status", "--type=merge", "-p", json.dumps(status))
    yield "the status is a subresource", code == 0, out + err
    _, out, err = kubectl("get", "egp", "shown", "-n", NAMESPACE)
    header, row = (out.splitlines() + ["", ""])[:2]
    yield "columns", header.split() == ["NAME", "ENFORCEMENT", "ACCEPTED", "PROGRAMMED", "PODS", "CHECKED", "AGE"], out + err
    yield "their values", row.split()[1:5] == ["Enforce", "True", "True", "2/3"], out + err
    doubled = {"status": {"conditions": [conditions[0], conditions[0]]}}
    code, out, err = kubectl("patch", "egp", "shown", "-n", NAMESPACE, "--subresource=status", "--type=merge", "-p", json.dumps(doubled))
    yield "a condition has one entry", code != 0 and "Duplicate value" in err, out + err
    # Documentation and names are published a moment after a definition is established.
    for what, words, *command in (
        ("kubectl explain says what a condition is", "dotted path into the tool's input", "explain", "egresspolicy.spec.tools.when"),
        ("the category names both kinds", "shown", "get", "postern", "-A", "-o", "name"),
        ("the cluster's kind has a short name", "", "get", "cegp"),
    ):
        yield what, becomes(lambda words=words, command=command: says(words, *command), PATIENCE), f"not within {PATIENCE} s"
    kubectl("delete", "egp", "shown", "-n", NAMESPACE)


def says(words, *command):
    """Whether a command of kubectl's succeeds with these words."""
    code, out, err = kubectl(*command)
    return code == 0 and words in out + err
