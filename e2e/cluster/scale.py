"""Measures the operator with many namespaces, pods and policies; a namespace that changes all the time delays no other.

python3 e2e/run.py cluster/scale [--namespaces 200] [--pods 2000] [--policies 400] [--cluster-policies 5] [--operator FILE]

An API server without a node, on loopback; pods are objects, their gateways are one server here that answers at port 15090 of
every address of loopback.
"""

import threading
import time
from functools import partial
from urllib.parse import urlsplit

import servers
from api_server import ApiServer
from commands import run
from crowd import Client, Crowd, Gateways, Maps, usage
from replicas import SYSTEM, Replica, kubectl, namespace
from runner import OPERATOR, Suite, executable
from runner import run as run_suite
from steps import Step
from waiting import becomes

RESTING = 20
ROUNDS = 5
PATIENCE = 300
ESTABLISHED = 30
# Beside it the table has every time as so many times this one of the same run.
REFERENCE = "one policy is edited, until its ConfigMap has it (the longest of 5)"


def steps():
    yield Step("the operator at scale", examine)


def stages(options):
    yield f"{options.namespaces} namespaces, {options.pods} pods, {options.policies} policies", partial(Scene, options), lambda _: steps()


class Scene(ApiServer):
    """An API server with a crowd, and one operator before it."""

    def __init__(self, options, directory):
        super().__init__(directory)
        self.options = options

    def __enter__(self):
        super().__enter__()
        self.replica = Replica("operator", self.processes, self.directory, self.options.operator)
        self.client = Client(self.directory / "pki", "127.0.0.1", port(self.directory))
        definitions(self.client, self.options.operator)
        self.crowd = Crowd(self.client, *(getattr(self.options, name) for name in ("namespaces", "pods", "policies", "cluster_policies")))
        return self


def examine(stage, step):
    crowd, began = stage.crowd, time.monotonic()
    crowd.make()
    print(
        f"made {len(crowd.namespaces)} namespaces, {len(crowd.pods)} pods, {len(crowd.policies)} policies in {time.monotonic() - began:.0f} s",
        flush=True,
    )
    maps, figures = Maps(stage.client), Figures(stage.replica, stage.client)
    gateways = Gateways(crowd, maps)
    it_starts(step, figures, crowd, maps)
    it_rests(figures, gateways)
    one_policy_is_edited(step, figures, crowd, maps)
    a_policy_of_the_cluster_is_edited(step, figures, crowd, maps)
    it_comes_to_rest(step, figures, crowd)
    noise_holds_nobody_up(step, figures, crowd, maps)
    step.notes.extend(figures.lines())
    if not all(step.checks):
        print(stage.processes.log("operator").read_text()[-4000:])


class Figures:
    """Durations, and the CPU and memory that the operator used meanwhile."""

    def __init__(self, replica, client):
        self.replica, self.client, self.rows = replica, client, []

    def process(self):
        return self.replica.processes.process(self.replica.name)

    def measured(self, what, act):
        """Runs `act` and returns its result: seconds, or None if the time is of no interest."""
        before, _ = usage(self.process())
        began = time.monotonic()
        seconds = act()
        after, memory = usage(self.process())
        self.rows.append((what, seconds, after - before, time.monotonic() - began, memory))
        return seconds

    def metric(self, name):
        """A sample of the operator's metrics, 0 where there is none."""
        lines = (self.replica.ask("/metrics")[1] or "").splitlines()
        return next((float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{name} ")), 0)

    def lines(self):
        yield "| | seconds | times the reference | CPU seconds of the operator | in | MiB in memory |"
        yield "|---|---|---|---|---|---|"
        reference = next((seconds for what, seconds, *_ in self.rows if what == REFERENCE), None)
        for what, seconds, cpu, wall, memory in self.rows:
            shown = "" if seconds is None else f"{seconds:.2f}"
            ratio = f"{seconds / reference:.1f}" if reference and seconds is not None else ""
            yield f"| {what} | {shown} | {ratio} | {cpu:.2f} | {wall:.0f} s | {memory:.0f} |"


def it_starts(step, figures, crowd, maps):
    figures.replica.start()

    def act():
        began = time.monotonic()
        maps.wait(lambda maps: len(maps.revisions) == len(crowd.namespaces), PATIENCE)
        return time.monotonic() - began

    seconds = figures.measured("from its start until every namespace is published", act)
    step.check("every namespace has its ConfigMap", len(maps.revisions) == len(crowd.namespaces), f"{len(maps.revisions)} after {seconds:.1f} s")
    it_comes_to_rest(step, figures, crowd)


def it_comes_to_rest(step, figures, crowd):
    """All pods are stamped, all enforce, and every policy's status says so."""

    def act():
        began = time.monotonic()
        becomes(lambda: figures.metric('postern_operator_pods{state="enforcing"}') == len(crowd.pods) and stamped(crowd), PATIENCE, 1)
        becomes(lambda: not unsettled(crowd), PATIENCE, 1)
        return time.monotonic() - began

    figures.measured("then until every pod is stamped and every status says so", act)
    late = unsettled(crowd)
    step.check("every status says that all pods enforce", not late, late[:5])


def stamped(crowd):
    """Whether no pod has another revision than the rest of its namespace."""
    return all(len(set(crowd.stamps(home))) == 1 for home in (crowd.crowded, *crowd.others[:3]))


def unsettled(crowd):
    """The policies whose status is not of all of its pods."""
    items = crowd.client.ask("GET", "/apis/postern.dev/v1alpha1/egresspolicies?resourceVersion=0")["items"]
    items += crowd.client.ask("GET", "/apis/postern.dev/v1alpha1/clusteregresspolicies?resourceVersion=0")["items"]
    good = (("Accepted", "True"), ("Programmed", "True"))
    told = {item["metadata"]["name"]: {(each["type"], each["status"]) for each in item.get("status", {}).get("conditions", [])} for item in items}
    return [name for name, conditions in told.items() if not conditions.issuperset(good)]


def it_rests(figures, gateways):
    asked, questions = gateways.asked, requests(figures)
    figures.measured("at rest", lambda: time.sleep(RESTING))
    print(
        f"at rest: {(gateways.asked - asked) / RESTING:.0f} gateways asked a second, {(requests(figures) - questions) / RESTING:.0f} requests of the API server a second",
        flush=True,
    )


def requests(figures):
    """Returns how many requests the API server has answered, its own included."""
    lines = figures.client.ask("GET", "/metrics").splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith("apiserver_request_total{"))


def one_policy_is_edited(step, figures, crowd, maps):
    times = []

    def act():
        times.extend(edited(crowd, maps, home, "edited") for home in crowd.others[:ROUNDS])
        return longest(times)

    figures.measured(REFERENCE, act)
    step.check("each edit is published", None not in times, told(times))


def edited(crowd, maps, home, word):
    """Seconds from an edit to another revision of the namespace, or None where that does not come."""
    before, began = maps.revisions[home], time.monotonic()
    crowd.edit(home, word)
    came = maps.wait(lambda maps: maps.revisions[home] != before, PATIENCE)
    return maps.at[home] - began if came else None


def longest(times):
    return None if None in times else max(times)


def told(times):
    return ["never" if each is None else f"{each:.2f}" for each in times]


def a_policy_of_the_cluster_is_edited(step, figures, crowd, maps):
    before = dict(maps.revisions)

    def act():
        began = time.monotonic()
        crowd.edit_everywhere("changed")
        maps.wait(lambda maps: all(maps.revisions[home] != before[home] for home in before), PATIENCE)
        return time.monotonic() - began

    figures.measured("a policy of the cluster is edited, until every ConfigMap has it", act)
    late = [home for home in before if maps.revisions[home] == before[home]]
    step.check("every namespace has the cluster's edit", not late, late[:5])


def noise_holds_nobody_up(step, figures, crowd, maps):
    """The most crowded namespace changes a policy without a pause; others change one now and then."""
    over, edits = threading.Event(), []

    def noise():
        while not over.is_set():
            crowd.edit(crowd.crowded, f"noise-{len(edits)}")
            edits.append(time.monotonic())

    published, stamped_after = [], []

    def act():
        for home in crowd.others[ROUNDS : 2 * ROUNDS]:
            published.append(edited(crowd, maps, home, "beside-noise"))
            began = time.monotonic()
            came = becomes(lambda home=home: set(crowd.stamps(home)) == {maps.revisions[home]}, PATIENCE)
            stamped_after.append(time.monotonic() - began if came else None)
        return longest(published)

    noisy = threading.Thread(target=noise)
    noisy.start()
    try:
        figures.measured("the same beside a namespace that is edited without a pause", act)
    finally:
        over.set()
        noisy.join()
    step.check("there was noise", len(edits) > 50, f"{len(edits)} edits of a namespace of {len(crowd.pods) // 4} pods")
    # Both came while the noise went on: it ends after them.
    step.check("others are published beside it", None not in published, told(published))
    step.check("and their pods stamped", None not in stamped_after, told(stamped_after))
    caught_up = becomes(lambda: set(crowd.stamps(crowd.crowded)) == {maps.revisions[crowd.crowded]}, PATIENCE, 1)
    step.check("the noisy namespace's pods get its newest revision in the end", caught_up, maps.revisions[crowd.crowded])


def definitions(client, operator):
    status, answer = kubectl("apply", "-f", "-", given=run(operator, "crds"))
    served = ("get", "egresspolicies,clusteregresspolicies", "--all-namespaces")
    if status != 0 or not becomes(lambda: kubectl(*served)[0] == 0, ESTABLISHED):
        raise RuntimeError(answer)
    client.ask("POST", "/api/v1/namespaces", namespace(SYSTEM))


def port(directory):
    """That of the API server, which chose it."""
    server = run(
        servers.executable("kubectl"),
        "--kubeconfig",
        directory / "pki/admin.kubeconfig",
        "config",
        "view",
        "-o",
        "jsonpath={.clusters[0].cluster.server}",
    )
    return urlsplit(server).port


COUNTS = {"namespaces": 200, "pods": 2000, "policies": 400, "cluster-policies": 5}
run_suite(
    Suite(
        "scale",
        __doc__.splitlines()[0],
        stages,
        options={**{f"--{name}": {"type": int, "default": count} for name, count in COUNTS.items()}, "--operator": executable(OPERATOR)},
    )
)
