"""The SDKs' environment: two authorities, the replaying upstream, the built gateway, and the judges with and without it."""

import http.client
import json
import os
import shutil
import ssl
import subprocess
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

from authority import Authority
from commands import end
from gateway_process import GatewayProcess
from recordings import BASES

HERE = Path(__file__).resolve().parent
HOSTS = sorted({urlsplit(base).hostname for bases in BASES.values() for base in bases.values()})
PATIENCE = 60
# How many bytes a write of the upstream has; 0 is all at once.
PIECES = [0, 1369, 61]
KEYS = {
    "ANTHROPIC_API_KEY": "sk-ant-judge", "OPENAI_API_KEY": "sk-judge", "GEMINI_API_KEY": "judge",
    "AWS_ACCESS_KEY_ID": "AKIAJUDGE", "AWS_SECRET_ACCESS_KEY": "judge", "AWS_EC2_METADATA_DISABLED": "true",
}


class Judge:
    """The process that drives the SDKs of one language, by way of one proxy."""

    def __init__(self, command, environment):
        self.command, self.environment, self.process = command, environment, None

    def ask(self, recording, piece, **more):
        """Returns the SDK's verdict on a recording that arrives in writes of `piece` bytes, or in one (0)."""
        question = {
            "dialect": recording.dialect, "stream": recording.stream, "base": recording.base, "model": recording.model,
            "headers": {"x-recording": recording.name, "x-piece": str(piece)},
        }
        return self.verdict(question | more)

    def verdict(self, question):
        """Returns the answer to a question."""
        if self.process is None:
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
            self.process = subprocess.Popen(list(map(str, self.command)), env=self.environment, **pipes)
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        verdict = self.process.stdout.readline()
        if not verdict:
            raise RuntimeError(f"the judge ended at {json.dumps(question)[:240]}")
        return json.loads(verdict)


class Stage:
    """Starts the upstream with these recordings and the gateway before it; leaving it ends what was started."""

    def __init__(self, postern, packages, recordings, policy, directory):
        self.packages, self.recordings, self.policy, self.directory = packages, recordings, policy, directory
        self.gateway = GatewayProcess(postern, directory)
        # The body of the last routed request, as the upstream had it.
        self.asked = directory / "asked.json"

    def __enter__(self):
        with ExitStack() as started:
            leaf = Authority(self.directory, "upstream", "Replaying Upstream CA").issue("leaf", "/CN=replay", [f"DNS:{name}" for name in HOSTS])
            manifest = self.directory / "manifest.json"
            manifest.write_text(json.dumps({name: {"path": str(each.file), "type": each.type} for name, each in self.recordings.items()}))
            command = map(str, [self.packages.node, HERE / "upstream.mjs", *leaf, manifest, self.asked])
            upstream = subprocess.Popen(list(command), stdout=subprocess.PIPE, text=True)
            started.callback(end, upstream)
            tls, self.direct = upstream.stdout.readline().split()
            reach = {"allowAddresses": ["127.0.0.0/8"], "hosts": dict.fromkeys(HOSTS, f"127.0.0.1:{tls}")}
            self.gateway.configure(self.policy, {"explicit": {"address": "127.0.0.1:0"}}, reach)
            started.callback(self.gateway.stop)
            self.gateway.start()
            self.started = started.pop_all()
        return self

    def __exit__(self, *_):
        self.started.close()

    def judges(self, direct):
        """By language, a judge who reaches the upstream straight, or through the gateway."""
        proxy = f"http://127.0.0.1:{self.direct}" if direct else f"http://{self.gateway.address}"
        roots = str(self.directory / ("upstream.crt" if direct else "ca/ca-cert.pem"))
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.directory), "NODE_USE_ENV_PROXY": "1"} | KEYS
        environment |= dict.fromkeys(["HTTPS_PROXY", "https_proxy"], proxy)
        environment |= dict.fromkeys(["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE"], roots)
        node = self.packages.cache / "judge.mjs"
        shutil.copy(HERE / node.name, node)
        commands = {"python": [self.packages.python, HERE / "judge.py"], "node": [self.packages.node, node]}
        judges = {language: Judge(command, environment) for language, command in commands.items()}
        for judge in judges.values():
            self.started.callback(lambda judge=judge: judge.process and end(judge.process))
        return judges

    def fetch(self, recording, piece):
        """The bytes that a client without any SDK gets through the gateway."""
        _, body = self.post(recording.url(), json.dumps(recording.body()), {"x-recording": recording.name, "x-piece": str(piece)})
        return body

    def post(self, url, body, headers=()):
        """The status and the bytes of the answer that a client without any SDK gets through the gateway."""
        url = urlsplit(url)
        trust = ssl.create_default_context(cafile=self.directory / "ca/ca-cert.pem")
        host, port = self.gateway.address.split(":")
        connection = http.client.HTTPSConnection(host, int(port), context=trust, timeout=PATIENCE)
        connection.set_tunnel(url.hostname, 443)
        target = url.path + (f"?{url.query}" if url.query else "")
        try:
            connection.request("POST", target, body, {"content-type": "application/json"} | dict(headers))
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()
