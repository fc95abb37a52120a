"""Parts of Postern and of the cluster fail: nothing gets out meanwhile, and all of it recovers."""

import os
import signal
import sqlite3
import time
from contextlib import closing

import manifests
from changes import POLICY, change, programmed
from chart import NAMESPACE as SYSTEM
from chart import OPERATOR
from cluster import RUN
from commands import tried
from images import EXECUTABLE
from install import CODER
from manifests import ALLOWED, LATER, OTHER, UNNAMED
from manifests import NAMESPACE as AGENTS
from network import UPSTREAM
from pods import GATEWAY
from steps import Step
from traffic import is_ours, strays
from waiting import PATIENCE, becomes

DEPLOYMENT = f"/apis/apps/v1/namespaces/{SYSTEM}/deployments/postern-operator"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases/postern-operator"
WEBHOOKS = [f"{kind}webhookconfigurations" for kind in ("mutating", "validating")]
# Kubernetes waits 15 s before another replica may lead.
TAKEOVER = 30
# A namespace that ends, and the command of a Job that ends when it is told to.
LEAVING = "leaving"
UNTIL_TOLD = "trap 'exit 0' TERM; until [ -e /tmp/end ]; do sleep 0.2; done"
LATE = "late"
# Requests that are served before and after.
ENOUGH = 20


def steps():
    yield Step("A14 the gateway is killed under load", gateway_killed)
    yield Step("a gateway that ends again is told", gateway_ends_again)
    yield Step("J10 a killed gateway keeps its ledger and its limits", gateway_remembers)
    yield Step("pods without a gateway are seen", unguarded)
    yield Step("the redirect is deleted from the node's side", redirect_deleted)
    yield Step("the operator is rolled", operator_rolled)
    yield Step("the leader is killed", leader_killed)
    yield Step("the API server is away", api_away)
    yield Step("H2 nobody answers the webhook", webhook_unreachable)
    yield Step("the operator is away, and nothing else stops", nothing_stops)


def gateway_killed(stage, step):
    pod, mark = stage.pod(CODER), stage.mark()
    stage.wire.clear()
    with pod.talk("load.py", ALLOWED, UPSTREAM[4]) as load:
        for _ in range(ENOUGH):
            load.until(served)
        killed = time.time()
        pod.kill_gateway()
        failed = load.until(lambda said: not served(said))
        again = load.until(served)
        for _ in range(ENOUGH):
            load.until(served)
        heard = load.end()
    step.check("the load fails, and is served again", failed and again, (failed, again))
    recovered = again["time"] - killed if again else None
    stage.times.record(step, "a killed gateway, until agents are served again", recovered, 60)
    foreign = [said for said in heard if "issuer" in said and not said["issuer"].startswith("Postern")]
    step.check("whatever answered was Postern", not foreign, f"{sum(map(served, heard))} of {len(heard)} requests were served")
    pages = [line["line"].split()[1] for line in stage.seen_since(mark, kind="request") if "/load" in line["line"]]
    of_those_served, others = ([said for said in heard if served(said) == which] for which in (True, False))
    lacking = {said["page"] for said in of_those_served} - set(pages)
    step.check("the upstream saw the requests that were served, each once", not lacking and len(pages) == len(set(pages)), len(pages))
    # One that the gateway had passed on, and was killed before it passed on the answer, arrived too.
    foreign = [said for said in others if said["page"] in pages and said["began"] > killed]
    step.check("of those that were not, it saw none that the gateway was not there for", not foreign, foreign or len(others))
    foreign = strays(stage, pod)
    step.check("no flow left for anywhere else", not foreign, stage.wire.opened(*pod.addresses()))
    # Kubelet writes what it did a moment after it.
    restarts = lambda: pod.status_of(GATEWAY)["restartCount"]
    step.check("kubelet has started it again, once", becomes(lambda: restarts() == 1, PATIENCE), restarts())
    pod.demand_ready()


def gateway_ends_again(stage, step):
    pod = stage.start(manifests.idle("crashing"))
    about = lambda reason: [said for said in stage.events_of(AGENTS) if said.startswith(f"{reason}: ")]
    pod.kill_gateway()
    shown = becomes(lambda: about("GatewayRestarted"), PATIENCE)
    step.check("an Event says that the gateway ended and runs again", shown and "exit code 137" in shown[0], shown)
    # Kubelet gives it another id once it runs.
    again = becomes(lambda: pod.status_of(GATEWAY)["restartCount"] == 1 and pod.is_ready(), PATIENCE)
    step.check("kubelet has started it again", again, pod.status_of(GATEWAY))
    pod.kill_gateway()
    shown = becomes(lambda: about("GatewayBackOff"), PATIENCE)
    step.check("an Event says that kubelet waits, and how long", shown and "Kubelet waits 10s" in shown[0], shown)
    stage.delete("pod", pod.name, AGENTS, wait=False)


def gateway_remembers(stage, step):
    limits = {"podSelector": {"matchLabels": {"app": "limited"}}, "limits": {"tokensPerDay": 1}}
    stage.create(manifests.policy("limited") | {"spec": limits})
    accepted = becomes(lambda: stage.condition("Accepted", "limited").get("status") == "True", PATIENCE)
    step.check("a policy with a limit is accepted", accepted, stage.policy("limited").get("status"))
    pod = stage.start(manifests.idle("limited"))
    said = pod.program("sdk.py", "{}")
    step.check("the first answer passes", "blocks" in said, said)
    ledger = Ledger(pod)
    answered = becomes(lambda: ledger.count("kind = 'Response' AND output_tokens = 8"), PATIENCE)
    step.check("its event is in the ledger", answered == 1, ledger.path)
    owner, uid = ledger.path.stat(), pod.uid()
    step.check("the ledger is a file of the gateway's user alone", (owner.st_uid, owner.st_mode & 0o777) == (uid, 0o600), (owner.st_uid, oct(owner.st_mode)))
    before = ledger.starts()
    pod.kill_gateway()
    again = becomes(lambda: pod.status_of(GATEWAY)["restartCount"] == 1 and pod.is_ready(), PATIENCE)
    step.check("kubelet has started it again", again, pod.status_of(GATEWAY))
    said = pod.program("sdk.py", "{}")
    step.check("what it had counted still counts", said.get("status") == 429 and "1 tokens a day" in said["error"], said)
    refused = becomes(lambda: ledger.count("kind = 'Request' AND verdict = 'Deny' AND rule = 'agents/limited/limits'"), PATIENCE)
    step.check("the ledger has what was before, and what came after", refused == 1 and ledger.count("output_tokens = 8") == 1, refused)
    after = ledger.starts()
    step.check("both starts are in it, and neither has ended", len(before) == 1 and len(after) == 2 and not any(after.values()), after)
    query = ["ledger", "query", "--ledger", "-", "--verdict", "Deny", "-o", "json"]
    read = lambda: tried(EXECUTABLE, *query, input=pod.logs(GATEWAY))
    denied = becomes(lambda: "agents/limited/limits" in read()[1], PATIENCE)
    step.check("kubectl logs | postern ledger query --ledger - says it too", denied, read())
    counted = tried(EXECUTABLE, "ledger", "stats", "--ledger", "-", input=pod.logs(GATEWAY))[1]
    step.check("kubectl logs | postern ledger stats --ledger - counts it", "agents/limited/limits" in counted, counted)
    stage.delete("egresspolicy", "limited", AGENTS)
    stage.delete("pod", pod.name, AGENTS, wait=False)


class Ledger:
    """The ledger of a pod, read from the node's side: nobody may exec into its gateway."""

    def __init__(self, pod):
        volumes = RUN / "kubelet/pods" / pod.object()["metadata"]["uid"] / "volumes"
        self.path = volumes / "kubernetes.io~empty-dir/postern-ledger/ledger.db"

    def rows(self, query):
        with closing(sqlite3.connect(f"file:{self.path}?mode=ro", uri=True)) as connection:
            return connection.execute(query).fetchall()

    def count(self, condition):
        return self.rows(f"SELECT count(*) FROM events WHERE {condition}")[0][0]

    def starts(self):
        """Each start of the gateway, with when it ended."""
        return dict(self.rows("SELECT hex(start), ended FROM starts"))


def unguarded(stage, step):
    """Of a namespace that is labelled while pods run in it."""
    stage.create_namespace(manifests.namespace(LATE))
    early = stage.start(manifests.idle("early", LATE))
    labels = ("postern.dev/injection=enabled", "pod-security.kubernetes.io/enforce=privileged")
    stage.kubectl("label", "namespace", LATE, *labels)
    stage.create(manifests.policy(LATE, LATE, credentials=[]))
    condition = lambda: stage.condition("Programmed", LATE, LATE)
    seen = becomes(lambda: condition().get("reason") == "Unguarded", PATIENCE)
    step.check("the policy's status names it", seen and f"1 unguarded: {LATE}/early" in condition()["message"], condition())
    listed = stage.kubectl("get", "egresspolicies", "-n", LATE)[1]
    step.check("kubectl get shows it", "0/1, 1 unguarded" in listed, listed)
    shown = becomes(lambda: [said for said in stage.events_of(LATE) if said.startswith("Unguarded: The pod has")], PATIENCE)
    step.check("an Event on the pod says what to do", shown and "Start it anew" in shown[0], shown)
    step.check("it is reported, not deleted", early.exists(), early.name)
    guarded = stage.start(manifests.idle("after", LATE))
    stage.kubectl("label", "namespace", LATE, "postern.dev/unguarded=Delete")
    gone = becomes(lambda: not early.exists(), 2 * PATIENCE)
    step.check("where the namespace asks for it, the operator deletes it", gone, early.name)
    well = becomes(lambda: stage.policy(LATE, LATE)["status"]["enforcing"] == "1/1", PATIENCE)
    step.check("the status forgets it, and the guarded pod stays", well and guarded.exists(), stage.policy(LATE, LATE)["status"])
    ready = stage.kubectl("wait", "--for=condition=Ready", "egp", LATE, "-n", LATE, "--timeout=15s")
    step.check("the policy is Ready for tools", ready[0] == 0, ready)
    stage.delete("namespace", LATE, wait=False)


def redirect_deleted(stage, step):
    doomed = stage.start(manifests.idle("doomed"))
    gateway, address = doomed.process_of(GATEWAY), doomed.addresses()[0]
    before = doomed.object()["metadata"]["uid"]
    doomed.in_network("nft", "delete", "table", "inet", "postern")
    # It would prove interception within the minute; a reload makes it do so now.
    os.kill(gateway, signal.SIGHUP)
    unproven = stage.measured(lambda: doomed.metric("postern_interception_proven", address) == 0, PATIENCE)
    step.check("the gateway says that interception is not proven", unproven is not None, unproven)

    def gone():
        matches = stage.api.found(doomed.path)
        return not matches or matches["metadata"].get("deletionTimestamp") or matches["metadata"]["uid"] != before

    taken = stage.measured(gone)
    stage.times.record(step, "a pod without its redirect, until the operator deletes it", taken, 120)
    events = becomes(lambda: [said for said in stage.events_of(AGENTS) if "ntercept" in said], PATIENCE)
    step.check("an Event says why", events, events)


def operator_rolled(stage, step):
    pod = stage.pod(CODER)
    with pod.talk("load.py", ALLOWED, UPSTREAM[4]) as load:
        load.until(served)
        stage.kubectl("rollout", "restart", "deployment/postern-operator", "-n", SYSTEM)
        status, said = stage.kubectl("rollout", "status", "deployment/postern-operator", "-n", SYSTEM, f"--timeout={PATIENCE}s")
        heard = load.end()
    step.check("the rollout ends", status == 0, said)
    failed = [said for said in heard if not served(said)]
    step.check("no request failed meanwhile", heard and not failed, failed or f"{len(heard)} served")
    made = stage.start(manifests.idle("after-rollout"))
    step.check("pods are injected as before", GATEWAY in str(made.object()["spec"]["initContainers"]), "Ready")
    stage.delete("pod", made.name, AGENTS, wait=False)


def leader_killed(stage, step):
    # After a rollout nobody may lead for a moment, or one that is about to end.
    pod = becomes(lambda: leading(stage), PATIENCE)
    if not step.check("the lease names a replica that stays", pod, leader(stage)):
        return
    holder = leader(stage)
    # It has no time to give the lease back.
    os.kill(pod.process_of("operator"), signal.SIGKILL)
    taken = stage.measured(lambda: leader(stage) not in ("", holder), PATIENCE)
    stage.times.record(step, "a killed leader, until another leads", taken, TAKEOVER)
    edit(stage, step, "led by another, an edit until its status says so")


def api_away(stage, step):
    pod = stage.pod(CODER)
    with pod.talk("probe.py") as talk:
        stage.cluster.stop_api()
        step.check("the API server does not answer", not stage.api.is_ready(), stage.api.ask("GET", "/readyz"))
        for _ in range(3):
            said = talk.ask({"kind": "https", "host": ALLOWED})
            step.check("what is allowed is served", is_ours(said), said)
            said = talk.ask({"kind": "https", "host": UNNAMED, "address": UPSTREAM[4]})
            step.check("what is not is refused", "error" in said, said)
        stage.cluster.start_api()
    before = renewed(stage)
    again = becomes(lambda: renewed(stage) > before, PATIENCE)
    step.check("the operator leads again", again, f"the lease is renewed, {renewed(stage)}")
    edit(stage, step, "after the API server's return, an edit until its status says so")


def webhook_unreachable(stage, step):
    scale(stage, 0)
    try:
        stage.create(manifests.deployment("held", AGENTS), manifests.deployment("free", OTHER))
        messages = lambda: [said for said in stage.events_of(AGENTS) if "FailedCreate" in said and "postern" in said]
        step.check("the ReplicaSet's event says why no pod starts", becomes(messages, PATIENCE), messages())
        free = becomes(lambda: [pod for pod in stage.pods_of(OTHER, "app=free") if pod.is_ready()], PATIENCE)
        step.check("pods of other namespaces start", free, [pod.name for pod in free])
        without_webhooks(stage, step)
        said = stage.pod(CODER).probe({"kind": "https", "host": ALLOWED})
        step.check("running agents are served", is_ours(said), said)
    finally:
        scale(stage, 2)
    # Whose pods were refused asks again after ever longer pauses.
    held = becomes(lambda: [pod for pod in stage.pods_of(AGENTS, "app=held") if pod.is_ready()], 3 * PATIENCE)
    names = [each["name"] for each in held[0].object()["spec"]["initContainers"]] if held else []
    step.check("with the operator back, they start and are injected", GATEWAY in names, names)
    stage.delete("deployment", "free", OTHER, wait=False)


def nothing_stops(stage, step):
    """Finalizers, labels of other controllers, deletions: the webhook judges none of them, and is not waited for."""
    stage.create_namespace(manifests.injected_namespace(LEAVING))
    policy = manifests.policy(namespace=LEAVING, tools=[], credentials=[])
    stage.create(policy, manifests.job("ends", UNTIL_TOLD))
    worker = becomes(lambda: stage.pods_of(AGENTS, "job-name=ends"), PATIENCE)[0].demand_ready()
    leaving, forced = (stage.start(manifests.idle(name)) for name in ("leaving", "forced"))
    stage.start(manifests.idle("left", LEAVING))
    scale(stage, 0)
    try:
        # Endpoints of the replicas that left are forgotten a moment later.
        refused = lambda: "failed calling webhook" in stage.apply(manifests.idle("refused"))[1]
        step.check("nobody answers the webhook", becomes(refused, PATIENCE), stage.apply(manifests.idle("refused"))[1])
        done = {part: {"workflows.argoproj.io/completed": "true"} for part in ("labels", "annotations")}
        status, said = stage.api.merge(leaving.path, {"metadata": done | {"finalizers": ["example.com/held"]}})
        step.check("a workflow's controller marks a pod", status == 200, said)
        body = {"spec": {"activeDeadlineSeconds": 900}}
        status, said = stage.api.merge(leaving.path, body)
        step.check("twin: a change of what a pod runs by is not taken", status == 500 and "postern.dev" in str(said), said)
        worker.execute("touch", "/tmp/end")
        ended = stage.measured(lambda: completed(stage, "ends"), PATIENCE)
        step.check("a Job completes", ended is not None, stage.api.take(f"/apis/batch/v1/namespaces/{AGENTS}/jobs/ends")["status"])
        stage.kubectl("delete", "pod", leaving.name, "-n", AGENTS, "--wait=false")
        status, said = stage.api.merge(leaving.path, {"metadata": {"finalizers": None}})
        step.check("a pod that is deleted loses its finalizer", status == 200, said)
        stage.kubectl("delete", "pod", forced.name, "-n", AGENTS, "--force", "--grace-period=0", "--wait=false")
        for pod, how in ((leaving, "deleted"), (forced, "deleted by force")):
            step.check(f"a pod that is {how} is gone", becomes(lambda pod=pod: not pod.exists(), PATIENCE), pod.name)
        stage.delete("job", "ends", AGENTS, wait=False)
        step.check("and a Job's pod with its Job", becomes(lambda: not worker.exists(), PATIENCE), worker.name)
        stage.kubectl("delete", "namespace", LEAVING, "--wait=false")
        gone = stage.measured(lambda: not stage.api.exists(f"/api/v1/namespaces/{LEAVING}"), PATIENCE)
        step.check("a namespace of agents is deleted with all that is in it", gone is not None, gone)
    finally:
        scale(stage, 2)


def completed(stage, job):
    """Whether a Job's controller has taken its finalizers from the pods, and says that it is complete."""
    status = stage.api.take(f"/apis/batch/v1/namespaces/{AGENTS}/jobs/{job}")["status"]
    return any(each["type"] == "Complete" and each["status"] == "True" for each in status.get("conditions", []))


def without_webhooks(stage, step):
    """The backstops need no webhook: with all of them deleted a pod without a gateway is refused."""
    saved = [stage.api.take(f"/apis/admissionregistration.k8s.io/v1/{kind}/postern") for kind in WEBHOOKS]
    for kind in WEBHOOKS:
        stage.delete(kind, "postern")

    def refused_by_backstop():
        """The refusal, once the API server has forgotten the webhooks; they are what is named before."""
        status, said = stage.apply(manifests.idle("bare"))
        return said if status != 0 and "ValidatingAdmissionPolicy" in said else None

    said = becomes(refused_by_backstop, PATIENCE)
    step.check("without any webhook, a pod without a gateway is refused", said and "postern" in said, said)
    for webhook in saved:
        for field in ("resourceVersion", "uid", "creationTimestamp", "managedFields", "generation"):
            webhook["metadata"].pop(field, None)
    stage.create(*saved)


def scale(stage, replicas):
    def reached():
        pods = stage.pods_of(SYSTEM, OPERATOR)
        return len(pods) == replicas and all(pod.is_ready() for pod in pods)

    stage.api.merge(DEPLOYMENT, {"spec": {"replicas": replicas}})
    if not becomes(reached, PATIENCE):
        raise RuntimeError(f"the operator does not come to {replicas} replicas: {stage.events_of(SYSTEM)[-5:]}")


def edit(stage, step, words):
    """An edit, which webhooks that were away may refuse at first, and the one that takes it back."""
    destinations = manifests.SPEC["destinations"]
    more = [*destinations, manifests.inspect("later", LATER)]
    taken = stage.measured(lambda: stage.api.merge(POLICY, {"spec": {"destinations": more}})[0] == 200, PATIENCE)
    step.check("the edit is taken", taken is not None, taken)
    programmed(stage, step, words)
    change(stage, destinations)


def leader(stage):
    return lease(stage).get("holderIdentity") or ""


def leading(stage):
    """The pod that leads, if it stays."""
    holder = leader(stage)
    return next((pod for pod in stage.pods_of(SYSTEM, OPERATOR) if holder.startswith(pod.name) and pod.stays()), None)


def renewed(stage):
    """When the leader last said that it leads, or an empty text."""
    return lease(stage).get("renewTime") or ""


def lease(stage):
    return (stage.api.found(LEASE) or {}).get("spec", {})


def served(said):
    return said.get("status") == 200 and said["issuer"].startswith("Postern")
