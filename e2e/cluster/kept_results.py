"""Files that a pod shares with its gateway: tool results that were cut (tool-results.md), and the workspace (workspace.md)."""

import json
import os
import signal

import manifests
from manifests import LLM, PLACEHOLDER
from manifests import NAMESPACE as AGENTS
from network import ELSEWHERE
from pods import GATEWAY
from steps import Step
from waiting import PATIENCE, becomes

READER, COMPANION = "reader", "postern-workspace"
EVIDENCE = "/run/postern/evidence"
LOG = "".join(f"test case {number} ... ok\n" for number in range(1, 301))
SOURCE = "struct Door;\n\nfn opens() -> bool {\n    true\n}\n"
FITS, MISSES = "    true\n", "    false\n"
POLICY = {
    "apiVersion": "postern.dev/v1alpha1",
    "kind": "EgressPolicy",
    "metadata": {"name": READER, "namespace": AGENTS},
    "spec": {
        "podSelector": {"matchLabels": {"app": READER}},
        "toolOutputs": {
            "compress": {
                "above": {"lines": 40, "tokens": 1024},
                "head": {"lines": 5, "tokens": 256},
                "tail": {"lines": 10, "tokens": 256},
                "diagnostics": 5,
            }
        },
        "edits": {"overwrite": "Deny", "match": "Deny"},
    },
}


def steps():
    yield Step("O1 O2 a tool result is cut, and the agent reads all of it", cut)
    yield Step("O4 the workspace's companion", companion)


def cut(stage, step):
    stage.create(POLICY)
    accepted = becomes(lambda: stage.condition("Accepted", READER).get("status") == "True", PATIENCE)
    step.check("the policy is Accepted", accepted, stage.policy(READER).get("status"))
    enabled = stage.chart.values()["gateway"] | {"evidence": {"enabled": True}}
    status, answer = stage.chart.install(gateway=enabled)
    step.check("helm upgrade with gateway.evidence.enabled", status == 0, answer)
    pod = started(stage, step, agent())
    pod.execute("tee", "/workspace/door.rs", input=SOURCE)
    call = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "make test"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": LOG}
    mark = stage.mark()
    begins = {"role": "user", "content": "go"}
    ask(pod, [begins])
    ask(pod, [begins, {"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}])
    read = " ".join(line["body"] for line in stage.seen_since(mark, kind="request"))
    step.check("the model reads what is left", "285 of 300 lines" in read and "test case 150 " not in read, read)
    name = read.partition(f"{EVIDENCE}/")[2].partition(".txt")[0]
    for container in ("agent", "user"):
        status, text = pod.execute("cat", f"{EVIDENCE}/{name}.txt", container=container)
        step.check(f"{container} reads all of it, byte for byte", status == 0 and text == LOG, text[:200])
    status, said = pod.execute("sh", "-c", f"echo forged > {EVIDENCE}/{name}.txt; rm {EVIDENCE}/{name}.txt; touch {EVIDENCE}/other")
    step.check("root in the agent's container writes nothing there", status != 0 and said.count("Read-only") == 3, said)
    said = pod.execute("curl", "-s", f"http://postern.internal/evidence/{name}?from=150&to=150")[1]
    step.check("the gateway tells it too", said == "test case 150 ... ok\n", said)


def started(stage, step, pod):
    """A pod that is started right after an upgrade, and Ready: for a moment a replica of before may answer the webhook, and what
    it makes is refused."""
    if not becomes(lambda: stage.apply(pod)[0] == 0, PATIENCE):
        raise RuntimeError(f"after {PATIENCE} s: {stage.apply(pod)[1]}")
    made = stage.pod(pod["metadata"]["name"])
    # Kubelet by itself shows changed settings after a minute and more; the operator's stamp makes it look at once.
    ready = stage.measured(made.is_ready)
    stage.times.record(step, "a pod made right after an upgrade that its settings wait for, until it is Ready", ready, 30)
    return made


def agent():
    """A pod with a volume to work in, mounted by a container of root and by one of an ordinary user."""
    pod = manifests.agent(READER, annotations={"postern.dev/workspace": "work:/workspace"}, volumes=[{"name": "work", "emptyDir": {}}])
    for container in pod["spec"]["containers"]:
        container["volumeMounts"] = [{"name": "work", "mountPath": "/workspace"}]
    return pod


def ask(pod, messages, tools=()):
    """What the agent hears, by curl."""
    body = json.dumps({"model": "claude-sonnet-4-5", "max_tokens": 64, "tools": list(tools), "messages": messages})
    command = ["curl", "-s", "-H", f"x-api-key: {PLACEHOLDER}", "-H", "content-type: application/json", "--data-binary", "@-"]
    return pod.execute(*command, f"https://{LLM}/v1/messages", input=body)[1]


def edit(pod, text):
    """What becomes of a call of Edit that looks for this text: the stand-in repeats the question as its input."""
    wanted = json.dumps({"file_path": "/workspace/door.rs", "old_string": text, "new_string": "    open\n"})
    said = ask(pod, [{"role": "user", "content": wanted}], [{"name": "Edit", "input_schema": {"type": "object"}}])
    event = lambda: next(iter(pod.events(kind="ToolCall")[-1:]), {})
    return said, event


def companion(stage, step):
    pod = stage.pod(READER)
    made = pod.init_container(COMPANION)
    mounts = {each["name"]: each.get("readOnly", False) for each in made["volumeMounts"]}
    step.check("it mounts the workspace, to read, and its socket", mounts == {"work": True, "postern-workspace": False}, mounts)
    user = made["securityContext"]["runAsUser"]
    step.check("its user is neither the gateway's nor an agent's", user not in (pod.uid(), 0, 1000), user)
    step.check("it is told nothing", not made.get("env") and not made.get("envFrom"), made.get("env"))
    mark = stage.mark()
    dial = f"import socket; socket.create_connection(({ELSEWHERE[4]!r}, 443), 3).sendall(b'out')"
    pod.in_network("setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "sh", "-c", f'python3 -c "{dial}" || true')
    reached = stage.seen_since(mark, kind="reached")
    step.check("what its user dials reaches nobody outside", not reached, reached)
    said = pod.execute("curl", "-s", "http://postern.internal/workspace/map")[1]
    step.check("the agent asks for an outline", "door.rs" in said and "3: fn opens() -> bool {" in said, said)
    pod.execute("ln", "-s", "/etc/passwd", "/workspace/passwd.rs")
    said = pod.execute("curl", "-s", "http://postern.internal/workspace/anatomy?path=passwd.rs")[1]
    step.check("a link is followed nowhere", "root" not in said, said)
    said, event = edit(pod, FITS)
    step.check("an edit that fits arrives", '"tool_use"' in said, said)
    fits = lambda: event()["toolCall"].get("workspace") if event() else None
    step.check("its event says so", becomes(lambda: fits() == "Fits", PATIENCE), event())
    said, _ = edit(pod, MISSES)
    denied = f"{AGENTS}/{READER}/edits" in said and '"tool_use"' not in said and "stands there 0 times" in said
    step.check("one that does not is blocked, with how often the text stands there", denied, said)
    # kubelet starts it anew only after a while.
    os.kill(pod.process_of(COMPANION), signal.SIGSTOP)
    try:
        said, event = edit(pod, MISSES)
        step.check("while it is silent edits are not judged", '"tool_use"' in said, said)
        unavailable = lambda: event().get("toolCall", {}).get("workspace") == "Unavailable"
        step.check("the event says so", becomes(unavailable, PATIENCE), event())
    finally:
        os.kill(pod.process_of(COMPANION), signal.SIGCONT)
    os.kill(pod.process_of(COMPANION), signal.SIGKILL)
    again = stage.measured(lambda: "edits" in edit(pod, MISSES)[0], PATIENCE)
    stage.times.record(step, "the workspace's companion killed, until edits are judged again", again, 30)
    step.check("the gateway was not restarted", pod.status_of(GATEWAY).get("restartCount") == 0, pod.status_of(GATEWAY))
