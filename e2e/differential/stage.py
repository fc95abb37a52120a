"""The three translators that are compared: the built gateway before a stand-in, and both peers as processes."""

import http.client
import json
import ssl
import subprocess
from contextlib import ExitStack
from pathlib import Path

from authority import Authority
from commands import end
from gateway_process import GatewayProcess
from inputs import NOBODY
from standin import StandIn

HERE = Path(__file__).resolve().parent
AGENT = "api.anthropic.com"
JSON, SSE = "application/json", "text/event-stream"
PATIENCE = 60


class Peer:
    """Another translator, as a process that is asked a line and answers a line."""

    def __init__(self, command):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
        self.process = subprocess.Popen(list(map(str, command)), **pipes)

    def ask(self, question):
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"a peer ended while it read {question}")
        return json.loads(line)

    def end(self):
        self.process.stdin.close()
        end(self.process)


class Stage:
    """Starts everything for these inputs; leaving it ends what was started."""

    def __init__(self, postern, packages, inputs, directory):
        self.packages, self.inputs, self.directory = packages, inputs, directory
        self.gateway = GatewayProcess(postern, directory)
        self.connection = None

    def __enter__(self):
        with ExitStack() as started:
            self.standin = started.enter_context(StandIn())
            # The settings want an authority of upstreams; nobody here has one.
            Authority(self.directory, "upstream", "Nobody's CA")
            self.labels = {}
            for each in self.inputs:
                self.labels.setdefault(json.dumps(each.terms), f"model-{len(self.labels)}")
            hosts = {host(json.loads(terms)) for terms in self.labels}
            reach = {"allowAddresses": ["127.0.0.0/8"], "hosts": dict.fromkeys(sorted(hosts), self.standin.address)}
            self.gateway.configure(policy(self.labels), {"explicit": {"address": "127.0.0.1:0"}}, reach)
            started.callback(self.gateway.stop)
            self.gateway.start()
            commands = {
                "litellm": [self.packages.python, "-I", HERE / "litellm_peer.py"],
                "llms": [self.packages.node, HERE / "llms_peer.cjs", self.packages.cache],
            }
            self.peers = {name: Peer(command) for name, command in commands.items()}
            for peer in self.peers.values():
                started.callback(peer.end)
            started.callback(self.hang_up)
            self.started = started.pop_all()
        return self

    def __exit__(self, *_):
        self.started.close()

    def ours(self, each):
        """What the gateway makes of an input, in the words of the peers; `answer` is what it said if it did not translate."""
        body = each.request | {"model": self.labels[json.dumps(each.terms)]}
        self.standin.answer = (each.answer, SSE if each.is_stream else JSON) if each.answer is not None else trivial(body)
        self.standin.asked = None
        # As agents write it: inputs of calls are copied as they are.
        status, text = self._post(json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode())
        if self.standin.asked is None:
            return {"error": f"{status} {text}"}
        if each.answer is None:
            return {"request": json.loads(self.standin.asked)}
        return {"events": text} if status == 200 and body.get("stream") else {"message": json.loads(text)}

    def _post(self, body):
        if self.connection is None:
            trust = ssl.create_default_context(cafile=self.directory / "ca/ca-cert.pem")
            at, port = self.gateway.address.split(":")
            self.connection = http.client.HTTPSConnection(at, int(port), context=trust, timeout=PATIENCE)
            self.connection.set_tunnel(AGENT, 443)
        headers = {"content-type": JSON, "anthropic-version": "2023-06-01", "x-api-key": "sk-ant-nobody"}
        self.connection.request("POST", "/v1/messages", body, headers)
        answer = self.connection.getresponse()
        return answer.status, answer.read().decode()

    def hang_up(self):
        if self.connection:
            self.connection.close()


def trivial(body):
    """Any answer of the form that was asked for."""
    if body.get("stream"):
        return 'data: {"choices": [{"index": 0, "delta": {"content": "ok"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n', SSE
    return '{"choices": [{"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}]}', JSON


def host(terms):
    return terms.get("host", NOBODY)


def policy(labels):
    """A model and a route for each set of terms."""
    hosts = sorted({host(json.loads(terms)) for terms in labels})
    names = {each: f"provider-{number}" for number, each in enumerate(hosts)}
    providers = [
        {"name": name, "endpoint": f"http://{each}/v1", "dialect": "OpenAIChat", "allowAddresses": ["127.0.0.0/8"]}
        for each, name in names.items()
    ]
    models = []
    for written, label in labels.items():
        terms = json.loads(written)
        fields = {key: value for key, value in terms.items() if key != "host"}
        models.append({"name": label, "provider": names[host(terms)], "model": "qwen3-coder"} | fields)
    return json.dumps({  # JSON is YAML.
        "apiVersion": "postern.dev/v1alpha1",
        "kind": "EgressPolicy",
        "metadata": {"name": "differential", "namespace": "e2e"},
        "spec": {
            "podSelector": {},
            "destinations": [{"name": "claude", "hosts": [AGENT], "action": "Inspect", "reach": "Routes"}],
            "hostedTools": {"action": "Allow", "urlSources": "Allow"},
            "providerState": "Allow",
            "modelProviders": providers,
            "models": models,
            "routes": [{"name": f"to-{label}", "match": {"models": [label]}, "to": [label]} for label in labels.values()],
        },
    })
