"""An injected pod: what its containers see, what its gateway says, and its network namespace from the node's side."""

import http.client
import json
import os
import signal
import subprocess
from pathlib import Path

from commands import run
from namespaces import inside
from network import NODE
from waiting import PATIENCE, becomes

HERE = Path(__file__).resolve().parent
ADMIN = 15090
GATEWAY, REDIRECT = "postern-gateway", "postern-redirect"


class Pod:
    def __init__(self, stage, name, namespace):
        self.stage, self.name, self.namespace = stage, name, namespace
        self.path = f"/api/v1/namespaces/{namespace}/pods/{name}"

    def object(self):
        return self.stage.api.take(self.path)

    def exists(self):
        return self.stage.api.exists(self.path)

    def is_ready(self):
        found = self.stage.api.found(self.path)
        return bool(found) and any(each["type"] == "Ready" and each["status"] == "True" for each in found["status"].get("conditions", []))

    def stays(self):
        """Whether it is Ready and nobody has deleted it."""
        found = self.stage.api.found(self.path)
        return bool(found) and "deletionTimestamp" not in found["metadata"] and self.is_ready()

    def demand_ready(self):
        if not becomes(self.is_ready, PATIENCE):
            found = self.stage.api.found(self.path) or {}
            raise RuntimeError(f"{self.name} is not Ready: {json.dumps(found.get('status'))} {self.stage.events_of(self.namespace)}")
        return self

    def addresses(self):
        return [each["ip"] for each in self.object()["status"]["podIPs"]]

    def uid(self):
        """The gateway's, as the injector drew it."""
        arguments = self.init_container(REDIRECT)
        words = [*arguments.get("command", []), *arguments.get("args", [])]
        return int(words[words.index("--uid") + 1])

    def init_container(self, name):
        return next(each for each in self.object()["spec"]["initContainers"] if each["name"] == name)

    def status_of(self, container):
        status = self.object()["status"]
        every = [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]
        return next((each for each in every if each["name"] == container), {})

    def execute(self, *command, container="agent", **options):
        """Status and output of a command in a container, by `kubectl exec`."""
        interactive = ["-i"] if "input" in options else []
        return self.stage.kubectl("exec", *interactive, "-n", self.namespace, self.name, "-c", container, "--", *command, **options)

    def program(self, name, *arguments, container="agent"):
        """Runs a program of `programs/`, and returns the JSON that it printed."""
        interpreter = ["node", "--input-type=module", "-"] if name.endswith(".mjs") else ["python3", "-"]
        source = (HERE / "programs" / name).read_text()
        status, printed = self.execute(*interpreter, *map(str, arguments), container=container, input=source)
        try:
            return json.loads(printed.strip().splitlines()[-1])
        except (IndexError, ValueError):
            return {"error": f"status {status}: {printed}"}

    def probe(self, *probes, container="agent"):
        """Returns the result of each attempt; see `programs/probe.py`."""
        with self.talk("probe.py", container=container) as talk:
            shown = [talk.ask(probe) for probe in probes]
        return shown if len(shown) > 1 else shown[0]

    def talk(self, program, *arguments, container="agent"):
        """A program of `programs/` that goes on: it needs no API server."""
        return Talk(self, program, arguments, container)

    def logs(self, container):
        return self.stage.kubectl("logs", "-n", self.namespace, self.name, "-c", container)[1]

    def events(self, **wanted):
        """The gateway's events on its standard output, those alone whose fields are as wanted; `destination_host` is nested."""
        lines = [json.loads(line) for line in self.logs(GATEWAY).splitlines() if line.startswith("{")]
        return [event for event in lines if all(field(event, name) == value for name, value in wanted.items())]

    def ask(self, path, port=ADMIN, address=None):
        """Status and body of a GET from the node, or (None, reason); with an address, of a pod that may be gone too."""
        with inside(NODE):
            connection = http.client.HTTPConnection(address or self.addresses()[0], port, timeout=5)
            try:
                connection.request("GET", path)
                answer = connection.getresponse()
                return answer.status, answer.read().decode(errors="replace")
            except (OSError, http.client.HTTPException) as error:
                return None, repr(error)
            finally:
                connection.close()

    def metric(self, name, address=None):
        """The sum over a metric's labels, or None."""
        lines = [line.split() for line in self.ask("/metrics", address=address)[1].splitlines()]
        values = [float(line[-1]) for line in lines if line and line[0].split("{")[0] == name]
        return sum(values) if values else None

    def process_of(self, container):
        """The id on this machine of a container's first process, once kubelet has written which container it is."""

        def found():
            wanted = self.status_of(container).get("containerID", "").removeprefix("containerd://")
            rows = [line.split() for line in self.stage.cluster.ctr("tasks", "ls").splitlines()]
            return [int(row[1]) for row in rows if row[0] == wanted and row[2] == "RUNNING"]

        if not (processes := becomes(found, PATIENCE)):
            raise RuntimeError(f"container {container} of {self.name} does not run")
        return processes[0]

    def kill_gateway(self):
        """SIGKILL: no socket is closed in good order."""
        os.kill(self.process_of(GATEWAY), signal.SIGKILL)

    def in_network(self, *command):
        """A command of the node's root in the pod's network namespace."""
        return run("nsenter", f"--net=/proc/{self.process_of(GATEWAY)}/ns/net", *command)


class Talk:
    """A program in a container that answers line for line, run by containerd."""

    def __init__(self, pod, program, arguments, container):
        source = (HERE / "programs" / program).read_text()
        stage, identifier = pod.stage, pod.status_of(container)["containerID"].removeprefix("containerd://")
        command = stage.cluster.inside_container(identifier, "python3", "-uc", source, *arguments)
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.heard = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def ask(self, question):
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        return self.next()

    def next(self):
        line = self.process.stdout.readline()
        output = json.loads(line) if line else {"error": "the program has ended"}
        self.heard.append(output)
        return output

    def until(self, holds, most=2000):
        """Reads on until a line is as wanted; that line, or None."""
        for _ in range(most):
            output = self.next()
            if holds(output):
                return output
            if output.get("error") == "the program has ended":
                return None
        return None

    def end(self):
        """All that it said."""
        if self.process.poll() is None:
            rest, _ = self.process.communicate(timeout=30)
            self.heard += [json.loads(line) for line in rest.splitlines()]
        return self.heard


def field(event, name):
    """A field of an event, `destination_host` being `host` of `destination`."""
    outer, _, inner = name.partition("_")
    value = event.get(outer)
    return value.get(inner) if inner and isinstance(value, dict) else value
