"""Changes while agents run (policies, keys, the CA), and how long each takes to be in force."""

import base64
import json
import re
import time

import manifests
from chart import NAMESPACE as SYSTEM
from commands import run
from install import CODER
from manifests import ALLOWED, LATER, LLM, NEXT_KEY, PLACEHOLDER
from manifests import NAMESPACE as AGENTS
from steps import Step
from traffic import is_ours, keys_seen
from waiting import PATIENCE, becomes

ROOT, BEGIN = "postern-root-ca", "-----BEGIN CERTIFICATE-----"
POLICY = f"/apis/postern.dev/v1alpha1/namespaces/{AGENTS}/egresspolicies/coding-agents"
OPERATOR = "system:serviceaccount:postern-system:postern-operator"
# Seconds in which a change is meant to be in force.
MEANT = 10
# How often the operator looks at the Secrets that policies refer to: it may not watch those of others.
LOOKS = 10


def steps():
    yield Step("an edited policy is enforced", edited)
    yield Step("policies that cannot be followed disturb nothing", unfollowed)
    yield Step("G10 a rotated key", key_rotated)
    yield Step("D8 a value that a policy names, and its rotation", value_rotated)
    yield Step("B16 the CA is issued anew", reissued)
    yield Step("B16 the root is rotated", root_rotated)


def edited(stage, step):
    pod = stage.pod(CODER)
    before, destinations = revision(stage), manifests.SPEC["destinations"]
    with pod.talk("probe.py") as talk:
        later = {"kind": "https", "host": LATER}
        said = talk.ask(later)
        step.check("a host that is not named yet is refused", "error" in said, said)
        change(stage, [*destinations, manifests.inspect("later", LATER)])
        taken = stage.measured(lambda: is_ours(talk.ask(later)), PATIENCE)
        stage.times.record(step, "an edit that allows, until it is enforced", taken, MEANT)
        programmed(stage, step, "an edit that allows, until its status says so")
        step.check("it is another revision", revision(stage) != before, (before, revision(stage)))
        change(stage, destinations)
        taken = stage.measured(lambda: "error" in talk.ask(later), PATIENCE)
        stage.times.record(step, "an edit that denies, until it is enforced", taken, MEANT)
    programmed(stage, step, "an edit that denies, until its status says so")


def change(stage, destinations):
    """An edit that must be taken."""
    status, said = stage.api.merge(POLICY, {"spec": {"destinations": destinations}})
    if status != 200:
        raise RuntimeError(f"the edit is refused: {status} {said}")


def unfollowed(stage, step):
    again = [{"name": "anthropic", "hosts": [LATER], "secretKeyRef": {"name": "anthropic", "key": "api-key"}}]
    absent = [{"name": "absent", "hosts": [LATER], "secretKeyRef": {"name": "nowhere", "key": "api-key"}}]
    other = [manifests.inspect("later", LATER) | {"provider": "OpenAIChat"}]
    wrong = {
        "a name of a credential that another policy has": ("twice", {"credentials": again}, "anthropic"),
        "a Secret that is not there": ("absent", {"credentials": absent}, "nowhere"),
        "one that contradicts another": ("against", {"destinations": other}, "provider"),
        "pods that are not there": ("nobody", {"podSelector": {"matchLabels": {"app": "nobody"}}}, ""),
    }
    pod, before = stage.pod(CODER), credentials(stage)
    for words, (name, spec, named) in wrong.items():
        document = {"podSelector": {}, "destinations": [manifests.inspect("later", LATER) | {"provider": "Anthropic"}]}
        status, said = stage.apply(manifests.policy(name) | {"spec": document | spec})
        if status == 0:
            said = becomes(lambda name=name, named=named: told(stage, name, named), PATIENCE)
        step.check(f"{words}: said where its author looks", said and named in said, said or told(stage, name))
    said = pod.probe({"kind": "https", "host": ALLOWED})
    step.check("what was allowed still is", is_ours(said), said)
    after = credentials(stage)
    step.check("the credential that was there still is", before["anthropic"] == after.get("anthropic"), sorted(after))
    names = [name for name, *_ in wrong.values()]
    stage.kubectl("delete", "egresspolicies", "-n", AGENTS, "--ignore-not-found", *names)


def told(stage, name, named=""):
    """Returns the conditions of a policy and how many pods it selects, or nothing if `named` is not in it."""
    status = stage.policy(name).get("status", {})
    said = [f"{each['type']} {each['status']}: {each['message']}" for each in status.get("conditions", [])]
    said = " ".join([*said, f"{status['selectedPods']} pods"]) if said else ""
    return said if named in said else ""


def credentials(stage):
    return stage.api.take(f"/api/v1/namespaces/{AGENTS}/secrets/postern-credentials")["data"]


def key_rotated(stage, step):
    pod, mark = stage.pod(CODER), stage.mark()
    question = json.dumps({"model": "claude-sonnet-4-5", "max_tokens": 8, "messages": [{"role": "user", "content": "hello"}]})
    headers = {"x-api-key": PLACEHOLDER, "content-type": "application/json", "anthropic-version": "2023-06-01"}
    asked = {"kind": "https", "host": LLM, "method": "POST", "path": "/v1/messages", "headers": headers, "body": question}
    restarts = pod.status_of("postern-gateway")["restartCount"]
    stage.create(manifests.secret(NEXT_KEY))
    with pod.talk("probe.py") as talk:
        taken = stage.measured(lambda: talk.ask(asked).get("status") == 200 and NEXT_KEY in keys_seen(stage, mark), PATIENCE)
    stage.times.record(step, "a rotated key, until the provider sees it", taken, LOOKS + MEANT)
    step.check("without a restart of the gateway", pod.status_of("postern-gateway")["restartCount"] == restarts, restarts)


def value_rotated(stage, step):
    """The value of a Secret must not leave; a new one takes its place without a new policy."""
    old, new = "blue-bicycle-on-monday", "green-bicycle-on-friday"
    password = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "database", "namespace": AGENTS}}
    values = [{"name": "database", "secretKeyRef": {"name": "database", "key": "password"}}]
    stage.create(password | {"stringData": {"password": old}})
    stage.create(manifests.policy("values", destinations=[], tools=[], credentials=[], dataLoss={"values": values}))
    restarts = stage.pod(CODER).status_of("postern-gateway")["restartCount"]
    with stage.pod(CODER).talk("probe.py") as talk:
        def leaves(value):
            asked = {"kind": "https", "host": ALLOWED, "method": "POST", "path": "/", "body": f"it is {value}, she said"}
            return talk.ask(asked).get("status") != 403

        taken = stage.measured(lambda: not leaves(old), PATIENCE)
        stage.times.record(step, "a value that a new policy names, until it stays", taken, LOOKS + MEANT)
        step.check("another value leaves", leaves(new))
        stage.create(password | {"stringData": {"password": new}})
        taken = stage.measured(lambda: not leaves(new), PATIENCE)
        stage.times.record(step, "a rotated value, until it stays", taken, LOOKS + MEANT)
        step.check("the value before it stays too", not leaves(old))
    step.check("without a restart of the gateway", stage.pod(CODER).status_of("postern-gateway")["restartCount"] == restarts, restarts)
    stage.kubectl("delete", "egresspolicy/values", "secret/database", "-n", AGENTS)


def reissued(stage, step):
    pod = stage.pod(CODER)
    restarts = pod.status_of("postern-gateway")["restartCount"]
    with pod.talk("probe.py") as talk:
        kept, fresh = {"kind": "https", "host": ALLOWED, "kept": "old"}, {"kind": "https", "host": ALLOWED}
        # What was issued for policies of before may still be on its way.
        same = becomes(lambda: issuer_key(talk.ask(fresh)) == authority_key(stage), PATIENCE)
        step.check("the leaf is of the namespace's intermediate", same, authority_key(stage))
        first = talk.ask(kept)
        before = issuer_key(first)
        # As the operator: everybody else is refused.
        stage.kubectl("delete", "secret", "postern-ca", "-n", AGENTS, f"--as={OPERATOR}")
        taken = stage.measured(lambda: issuer_key(talk.ask(fresh)) not in (None, before), PATIENCE)
        stage.times.record(step, "the CA issued anew, until agents see it", taken, MEANT)
        after = talk.ask(fresh)
        step.check("new connections have the new issuer", issuer_key(after) == authority_key(stage), issuer_key(after))
        said = talk.ask(kept)
        step.check("the connection of before goes on", is_ours(said) and said["leaf"] == first["leaf"], said.get("status") or said)
    step.check("without a restart of the gateway", pod.status_of("postern-gateway")["restartCount"] == restarts, restarts)
    text = run("openssl", "x509", "-noout", "-text", input=intermediate(stage))
    constraints = text[text.find("Name Constraints") :].split("Signature Algorithm")[0]
    permitted = re.findall(r"DNS:(\S+)", constraints)
    step.check("it is constrained to the names that are inspected or denied", {ALLOWED, LLM} <= set(permitted), constraints)


def root_rotated(stage, step):
    pod, old = stage.pod(CODER), certificates(stage)[-1]
    restarts = pod.status_of("postern-gateway")["restartCount"]
    with pod.talk("probe.py") as talk:
        kept, fresh = {"kind": "https", "host": ALLOWED, "kept": "old"}, {"kind": "https", "host": ALLOWED}
        talk.ask(kept)
        asked = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        stage.kubectl("annotate", "secret", ROOT, "-n", SYSTEM, f"postern.dev/rotate={asked}", "--overwrite")
        began = time.monotonic()
        given = becomes(lambda: two_roots(stage), PATIENCE)
        step.check("agents are given it before anything is issued by it", given and chain(given)[-1] == old, bool(given))
        taken = becomes(lambda: trusted(pod) == "2", PATIENCE) and time.monotonic() - began
        stage.times.record(step, "a new root, until agents trust it besides the old one", taken or None, 2 * MEANT)
        below = lambda: certificates(stage)[-1] != old and issuer_key(talk.ask(fresh)) == authority_key(stage)
        stage.times.record(step, "a new root, until leaves are below it", stage.measured(below, PATIENCE), 3 * MEANT)
        said = talk.ask(fresh)
        step.check("agents accept what is below it", is_ours(said), said)
        said = talk.ask(kept)
        step.check("the connection of before goes on", is_ours(said), said)
    step.check("without a restart of the gateway", pod.status_of("postern-gateway")["restartCount"] == restarts, restarts)


def trusted(pod):
    """How many roots of Postern's agents trust."""
    return pod.execute("grep", "-c", "BEGIN", "/run/postern-trust/ca.pem")[1].strip()


def two_roots(stage):
    """The Secret of the namespace's CA where agents are given two roots, or None."""
    found = authority(stage)
    return found if found["roots.pem"].count(BEGIN) == 2 else None


def certificates(stage):
    """The intermediate and the root, in PEM."""
    return chain(authority(stage))


def chain(found):
    return [f"{BEGIN}{each}" for each in found["ca-cert.pem"].split(BEGIN)[1:]]


def programmed(stage, step, words):
    """Until the status says that every selected pod enforces the newest generation."""

    def holds():
        status = stage.policy().get("status", {})
        return stage.condition("Programmed").get("status") == "True" and status.get("selectedPods") == status.get("enforcingPods")

    stage.times.record(step, words, stage.measured(holds, PATIENCE), 2 * MEANT)


def revision(stage):
    return stage.api.take(f"/api/v1/namespaces/{AGENTS}/configmaps/postern-policy")["data"]["revision"]


def intermediate(stage):
    return authority(stage)["ca-cert.pem"]


def authority(stage):
    """The Secret of the namespace's CA, at one moment."""
    data = stage.api.take(f"/api/v1/namespaces/{AGENTS}/secrets/postern-ca")["data"]
    return {name: base64.b64decode(value).decode() for name, value in data.items()}


def authority_key(stage):
    """The identifier of the intermediate's key (RFC 5280 section 4.2.1.2)."""
    return identifier(run("openssl", "x509", "-noout", "-ext", "subjectKeyIdentifier", input=intermediate(stage)))


def issuer_key(said):
    """The identifier of the key that signed a leaf, or None where there was none."""
    if not said.get("leaf"):
        return None
    pem = f"-----BEGIN CERTIFICATE-----\n{said['leaf']}\n-----END CERTIFICATE-----\n"
    folded = re.sub(r"(.{64})", r"\1\n", pem.splitlines()[1])
    return identifier(run("openssl", "x509", "-noout", "-ext", "authorityKeyIdentifier", input=pem.replace(said["leaf"], folded)))


def identifier(text):
    found = re.search(r"(?:[0-9A-F]{2}:){7,}[0-9A-F]{2}", text)
    return found[0] if found else None
