"""Traffic of an agent's pod: allowed, denied, and changed on its way."""

import manifests
from answers import DANGEROUS, HARMLESS
from install import CODER
from manifests import ALLOWED, FORBIDDEN, KEY, PLACEHOLDER, UNNAMED
from network import ELSEWHERE, METADATA, NODE_ADDRESS, RESOLVER, UPSTREAM
from outside import INTACT
from steps import Step
from waiting import PATIENCE, becomes

POSTERN = "Postern"
# What a rejecting rule is to a sender: EPERM where the kernel rejects on the way out.
REFUSALS = ("ECONNREFUSED", "ECONNRESET", "EPERM", "EACCES", "ENETUNREACH", "EHOSTUNREACH")
CONTAINERS = ("agent", "user")


def steps():
    yield Step("an allowed host is inspected", inspected)
    yield Step("a tool call is blocked, and the key is swapped", guarded)
    yield Step("a denied host, and one that no rule names", denied)
    yield Step("UDP, and addresses that nobody names", without_name)
    yield Step("A20 inside the cluster", inside_the_cluster)
    yield Step("A22 inbound", inbound)
    yield Step("H12 a Job ends", job_ends)
    yield Step("H11 what the gateway recorded", recorded)


def inspected(stage, step):
    pod, mark = stage.pod(CODER), stage.mark()
    for container in CONTAINERS:
        for family, address in {"as resolved": None, **{f"over IPv{each}": at for each, at in UPSTREAM.items()}}.items():
            said = pod.probe({"kind": "https", "host": ALLOWED, "address": address}, container=container)
            step.check(f"{container}: {family}: the issuer is Postern's of this namespace", is_ours(said) and said["body"] == INTACT, said)
    status, said = pod.execute("curl", "-sv", f"https://{ALLOWED}/")
    step.check("curl: the issuer is Postern's", status == 0 and POSTERN in line_of(said, "issuer:") and INTACT in said, line_of(said, "issuer:"))
    said = pod.program("node.mjs", f"https://{ALLOWED}/")
    step.check("Node trusts the gateway", said.get("body") == INTACT, said)
    said = pod.execute("sh", "-c", "echo $JAVA_TOOL_OPTIONS; head -c 4 /run/postern-trust/java.jks | od -An -tx1")[1]
    step.check("Java is told of a key store", "javax.net.ssl.trustStore=" in said and "fe ed fe ed" in said, said)
    requests = stage.seen_since(mark, kind="request")
    peers = {request["peer"] for request in requests}
    step.check("the upstream saw each request, from this node alone", len(requests) == 8 and len(peers) <= 2, (len(requests), peers))
    bundle = pod.execute("sh", "-c", "grep -c BEGIN $SSL_CERT_FILE")[1].strip()
    step.check("the bundle has the system's roots and Postern's", int(bundle) > 100, f"{bundle} certificates")


def guarded(stage, step):
    pod, mark = stage.pod(CODER), stage.mark()
    said = pod.program("sdk.py", "{}")
    blocks = said.get("blocks", [])
    calls = [block["input"].get("command") for block in blocks if block["type"] == "tool_use"]
    texts = " ".join(block["text"] for block in blocks if block["type"] == "text")
    step.check("the harmless call arrives, the dangerous one does not", calls == [HARMLESS], said)
    step.check("the model reads why", "coding-agents/no-force-remove" in texts and DANGEROUS not in str(blocks), texts)
    step.check("the agent holds the placeholder", said.get("key") == PLACEHOLDER, said.get("key"))
    keys = keys_seen(stage, mark)
    step.check("the upstream saw the key", keys == [KEY], keys)
    mark = stage.mark()
    said = pod.program("sdk.py", '{"api_key": "sk-ant-another-key"}')
    step.check("another key is refused before it leaves", said.get("status") == 403 and not stage.seen_since(mark, kind="request"), said)
    said = pod.execute("sh", "-c", "env; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'")[1]
    step.check("the key is in no variable", KEY not in said and PLACEHOLDER in said, line_of(said, "ANTHROPIC"))


def denied(stage, step):
    pod, mark = stage.pod(CODER), stage.mark()
    said = pod.probe({"kind": "https", "host": FORBIDDEN})
    rule = f"{manifests.NAMESPACE}/coding-agents/forbidden"
    step.check("a host that a rule denies: 403 with the rule", said.get("status") == 403 and rule in said["body"], said)
    event = said.get("headers", {}).get("x-postern-event")
    # It is written after the answer, and comes through containerd and kubelet.
    matches = becomes(lambda: [each["decision"] for each in pod.events() if each["id"] == event], PATIENCE)
    step.check("the event that it names is on the gateway's standard output", matches and matches[0]["verdict"] == "Deny", matches)
    said = pod.probe({"kind": "name", "name": UNNAMED}, {"kind": "https", "host": UNNAMED, "address": UPSTREAM[4]})
    step.check("a name that no rule names does not exist", "error" in said[0], said[0])
    step.check("dialled at an address, it is reset", "error" in said[1], said[1])
    said = stage.seen_since(mark)
    asked = [line["said"] for line in said if line["kind"] == "question" and (UNNAMED in line["said"] or FORBIDDEN in line["said"])]
    step.check("nobody outside was asked for either, or saw a request", not asked and not [line for line in said if line["kind"] == "request"], said)


def without_name(stage, step):
    pod, mark = stage.pod(CODER), stage.mark()
    stage.wire.clear()
    seconds = []
    for container in CONTAINERS:
        for address in (*ELSEWHERE.values(), UPSTREAM[4]):
            said = pod.probe({"kind": "udp", "address": address, "port": 443}, container=container)
            # A refusal of the kernel's: what is dropped ends in a timeout instead.
            step.check(f"{container}: UDP to {address} is refused", refused(said), said)
            seconds.append(said["seconds"])
        for address in ELSEWHERE.values():
            for port in (80, 443):
                said = pod.probe({"kind": "tcp", "address": address, "port": port}, container=container)
                step.check(f"{container}: TCP to {address} port {port} is refused", refused(said), said)
    stage.times.record(step, "UDP to an address that nobody names, until it is refused", max(seconds), 2)
    nothing_left(stage, step, pod, mark)


def inside_the_cluster(stage, step):
    neighbour = stage.start(manifests.agent("neighbour", manifests.OTHER))
    pod, mark = stage.pod(CODER), stage.mark()
    addresses = neighbour.addresses()
    stage.wire.clear()
    places = {
        "the metadata service": (METADATA, 80),
        "the API server's Service": ("10.96.0.1", 443),
        "the API server": (NODE_ADDRESS[4], 6443),
        "kubelet": (NODE_ADDRESS[4], 10250),
        "the webhook's Service": (service_of(stage), 443),
        **{f"another pod at {address}": (address, manifests.DECLARED) for address in addresses},
    }
    for name, (address, port) in places.items():
        said = pod.probe({"kind": "tcp", "address": address, "port": port})
        step.check(f"{name} is refused", refused(said), said)
    nothing_left(stage, step, pod, mark)
    open_there = neighbour.probe({"kind": "tcp", "address": NODE_ADDRESS[4], "port": 6443})
    step.check("twin: a pod that is not injected gets there", "heard" in open_there, open_there)


def inbound(stage, step):
    pod, neighbour = stage.pod(CODER), stage.pod("neighbour", manifests.OTHER)
    if not neighbour.exists():
        stage.start(manifests.agent("neighbour", manifests.OTHER))
    for address in pod.addresses():
        said = neighbour.probe({"kind": "tcp", "address": address, "port": manifests.DECLARED})
        step.check(f"a declared port answers at {address}", "200" in said.get("heard", ""), said)
        said = neighbour.probe({"kind": "tcp", "address": address, "port": manifests.UNDECLARED, "patience": 1})
        step.check(f"an undeclared port does not answer at {address}", "heard" not in said, said)
    step.check("kubelet's probes pass", pod.is_ready(), "Ready")
    stage.delete("pod", "neighbour", manifests.OTHER, wait=False)


def job_ends(stage, step):
    fetch = f"curl --silent --show-error --fail https://{ALLOWED}/job"
    mark = stage.mark()
    stage.create(manifests.job("errand", fetch))
    path = f"/apis/batch/v1/namespaces/{manifests.NAMESPACE}/jobs/errand"
    done = stage.measured(lambda: stage.api.take(path)["status"].get("succeeded") == 1)
    stage.times.record(step, "an injected Job from its creation to its end", done, 60)
    seen = [line["line"] for line in stage.seen_since(mark, kind="request") if "/job" in line["line"]]
    step.check("its request reached the upstream", seen == ["GET /job HTTP/1.1"], seen)
    stage.delete("job", "errand", manifests.NAMESPACE, wait=False)


def recorded(stage, step):
    pod = stage.pod(CODER)
    events = pod.events()
    numbers = [event["sequence"] for event in events]
    step.check(
        "events are JSON lines without gaps",
        numbers == list(range(numbers[0], numbers[0] + len(numbers))),
        f"{len(numbers)} events from {numbers[0]}",
    )
    workload = events[-1].get("workload")
    step.check("they name the pod", workload and workload["pod"] == CODER and workload["serviceAccount"] == "agent", workload)
    step.check("no key is in them", KEY not in pod.logs("postern-gateway"), "not found")


def nothing_left(stage, step, pod, mark):
    """By what stands outside, and by the node's count of the packets of flows that the pod's addresses opened."""
    reached = [line for line in stage.seen_since(mark) if line["kind"] in ("reached", "datagram", "request")]
    step.check("nothing arrived outside", not reached, reached or "nothing")
    foreign = strays(stage, pod)
    step.check("nothing left the pod but what its gateway keeps open to the upstream", not foreign, stage.wire.opened(*pod.addresses()))


def strays(stage, pod):
    """The flows that neither go to the resolver nor to the upstream's HTTPS."""
    known = {f"udp {RESOLVER} 53", *(f"tcp {address} 443" for address in UPSTREAM.values())}
    return {flow: packets for flow, packets in stage.wire.opened(*pod.addresses()).items() if flow not in known}


def keys_seen(stage, mark):
    """The keys that reached the provider, wherever its clients write them."""
    headers = [request["headers"] for request in stage.seen_since(mark, kind="request")]
    return [each.get("x-api-key") or each.get("authorization", "").removeprefix("Bearer ") for each in headers]


def service_of(stage):
    return stage.api.take("/api/v1/namespaces/postern-system/services/postern-webhook")["spec"]["clusterIP"]


def is_ours(said):
    return POSTERN in (said.get("issuer") or "") and said.get("status") == 200


def refused(said):
    """By the kernel or by the gateway: with a reset, or with the reason where the bytes were plain HTTP."""
    shown = said.get("heard")
    return said.get("error") in REFUSALS or shown == "" or "x-postern-decision: deny" in (shown or "")


def line_of(text, word):
    return next((line.strip() for line in text.splitlines() if word in line), "")
