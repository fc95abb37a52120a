"""What the SDKs meet: two authorities, the replaying upstream, the built gateway, and the judges on either way."""

import http.client
import json
import os
import shutil
import signal
import ssl
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

from recordings import BASES

HERE = Path(__file__).resolve().parent
HOSTS = sorted({urlsplit(base).hostname for bases in BASES.values() for base in bases.values()})
PATIENCE = 60
KEYS = {
    "ANTHROPIC_API_KEY": "sk-ant-judge", "OPENAI_API_KEY": "sk-judge", "GEMINI_API_KEY": "judge",
    "AWS_ACCESS_KEY_ID": "AKIAJUDGE", "AWS_SECRET_ACCESS_KEY": "judge", "AWS_EC2_METADATA_DISABLED": "true",
}


class Judge:
    """The process that drives the SDKs of one language, by way of one proxy."""

    def __init__(self, command, environment):
        self.command, self.environment, self.process = command, environment, None

    def ask(self, recording, piece):
        """What the SDK makes of a recording that comes in writes of `piece` bytes, or in one (0)."""
        if self.process is None:
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
            self.process = subprocess.Popen(list(map(str, self.command)), env=self.environment, **pipes)
        question = {
            "dialect": recording.dialect, "stream": recording.stream, "base": recording.base, "model": recording.model,
            "headers": {"x-recording": recording.name, "x-piece": str(piece)},
        }
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        verdict = self.process.stdout.readline()
        if not verdict:
            raise RuntimeError(f"the judge ended while it read {recording.name}")
        return json.loads(verdict)


class Stage:
    """Starts everything in a directory; leaving it ends what was started."""

    def __init__(self, postern, packages, directory):
        self.postern, self.packages, self.directory = postern, packages, directory
        self.events, self.log, self.policy = (directory / name for name in ("events.jsonl", "gateway.log", "policy.yaml"))

    def __enter__(self):
        with ExitStack() as started:
            self.started = started
            self._make_authorities()
            self.started = started.pop_all()
        return self

    def __exit__(self, *_):
        self.started.close()

    def serve(self, recordings, policy):
        """Starts the upstream with these recordings, and the gateway before it under this policy."""
        manifest = self.directory / "manifest.json"
        manifest.write_text(json.dumps({name: {"path": str(each.file), "type": each.type} for name, each in recordings.items()}))
        command = [self.packages.node, HERE / "upstream.mjs", self.directory / "leaf.pem", self.directory / "leaf-key.pem", manifest]
        process = self._start(command, stdout=subprocess.PIPE, text=True)
        self.tls, self.direct = process.stdout.readline().split()
        self.policy.write_text(policy)
        self._start_gateway()

    def judges(self, direct):
        """By language, a judge who reaches the upstream straight, or through the gateway."""
        proxy = f"http://127.0.0.1:{self.direct}" if direct else f"http://{self.address}"
        roots = str(self.directory / ("upstream.pem" if direct else "ca/ca-cert.pem"))
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.directory), "NODE_USE_ENV_PROXY": "1"} | KEYS
        environment |= dict.fromkeys(["HTTPS_PROXY", "https_proxy"], proxy)
        environment |= dict.fromkeys(["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE"], roots)
        node = self.packages.cache / "judge.mjs"
        shutil.copy(HERE / node.name, node)
        commands = {"python": [self.packages.python, HERE / "judge.py"], "node": [self.packages.node, node]}
        found = {language: Judge(command, environment) for language, command in commands.items()}
        for judge in found.values():
            self.started.callback(lambda judge=judge: judge.process and end(judge.process))
        return found

    def fetch(self, recording, piece):
        """The bytes that a client without any SDK gets through the gateway."""
        url = urlsplit(recording.url())
        trust = ssl.create_default_context(cafile=self.directory / "ca/ca-cert.pem")
        host, port = self.address.split(":")
        connection = http.client.HTTPSConnection(host, int(port), context=trust, timeout=PATIENCE)
        connection.set_tunnel(url.hostname, 443)
        headers = {"content-type": "application/json", "x-recording": recording.name, "x-piece": str(piece)}
        target = url.path + (f"?{url.query}" if url.query else "")
        connection.request("POST", target, json.dumps(recording.body()), headers)
        try:
            return connection.getresponse().read()
        finally:
            connection.close()

    def apply(self, policy):
        """Puts another policy in force."""
        if policy == self.policy.read_text():
            return
        before = self._status()["policy"]["revision"]
        self.policy.write_text(policy)
        self.gateway.send_signal(signal.SIGHUP)
        self._demand(lambda status: status["policy"]["revision"] != before)

    def _make_authorities(self):
        upstream, key = self.directory / "upstream.pem", self.directory / "upstream-key.pem"
        self._openssl("-out", upstream, "-keyout", key, "-subj", "/CN=Replaying Upstream CA", "-addext", "keyUsage=critical,keyCertSign")
        names = ",".join(f"DNS:{name}" for name in HOSTS)
        leaf = ["-CA", upstream, "-CAkey", key, "-addext", f"subjectAltName={names}", "-addext", "basicConstraints=critical,CA:FALSE"]
        self._openssl("-out", self.directory / "leaf.pem", "-keyout", self.directory / "leaf-key.pem", "-subj", "/CN=replay", *leaf)
        self._run(self.postern, "ca", "init", "--directory", self.directory / "ca")

    def _openssl(self, *arguments):
        self._run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", *arguments)

    def _start_gateway(self):
        settings = self.directory / "settings.yaml"
        settings.write_text(json.dumps({  # JSON is YAML.
            "listeners": {"explicit": {"address": "127.0.0.1:0"}},
            "admin": {"address": "127.0.0.1:0", "socket": "status.sock"},
            "interception": {"mode": "Required", "caCertificate": "ca/ca-cert.pem", "caKey": "ca/ca-key.pem"},
            "policy": {"path": self.policy.name},
            "upstream": {
                "roots": ["upstream.pem"], "allowAddresses": ["127.0.0.0/8"], "hosts": dict.fromkeys(HOSTS, f"127.0.0.1:{self.tls}"),
            },
        }))
        environment = {"PATH": os.environ["PATH"], "POSTERN_INTERCEPT": "1"}
        with self.events.open("w") as events, self.log.open("w") as log:
            command = [self.postern, "gateway", "--config", settings]
            self.gateway = self._start(command, env=environment, stdout=events, stderr=log)
        status = self._demand(lambda status: status["ready"])
        (self.address,) = [each["address"] for each in status["listeners"] if each["mode"] == "explicit"]

    def _status(self):
        """What the gateway says of itself, or None before it says anything."""
        ask = [self.postern, "status", "--socket", self.directory / "status.sock", "--output", "json"]
        told = subprocess.run(ask, capture_output=True, check=False)
        return json.loads(told.stdout) if told.stdout else None

    def _demand(self, holds):
        deadline = time.monotonic() + PATIENCE
        while self.gateway.poll() is None and time.monotonic() < deadline:
            status = self._status()
            if status and holds(status):
                return status
            time.sleep(0.05)
        raise RuntimeError(f"the gateway did not come to where it should:\n{self.log.read_text()}")

    def _start(self, command, **options):
        process = subprocess.Popen(list(map(str, command)), **options)
        self.started.callback(end, process)
        return process

    def _run(self, *command):
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(map(str, command))}:\n{done.stdout}{done.stderr}")


def end(process):
    process.terminate()
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
