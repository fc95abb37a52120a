"""Pods without a node: their network namespaces, files as kubelet would mount them, and their gateways."""

import base64
import json
import os
import shutil
import urllib.request

import replicas
from commands import run, tried
from gateway_process import metric
from namespaces import within
from waiting import becomes

NODE_ADDRESS = "10.98.6.1"
ADMIN = 15090
UID = 61234
# The pod that is redirected, and the one beside it that has a proxy alone.
NAME, BESIDE = "coder-0", "coder-1"
NAMESPACES = {NAME: "ob", BESIDE: "ob-beside"}
ADDRESSES = {NAME: "10.98.6.2", BESIDE: "10.98.6.6"}


def wire():
    """A namespace for each pod, joined to the one that this program runs in; all lead nowhere else."""
    unwire()
    run("ip", "link", "set", "lo", "up")
    for number, (name, there) in enumerate(NAMESPACES.items()):
        run("ip", "netns", "add", there)
        run("ip", "-n", there, "link", "set", "lo", "up")
        run("ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", there)
        here = f"10.98.6.{4 * number + 1}"
        for where, device, address in (([], name, here), (["-n", there], "eth0", ADDRESSES[name])):
            run("ip", *where, "address", "add", f"{address}/30", "dev", device)
            run("ip", *where, "link", "set", device, "up")
        run("ip", "-n", there, "route", "add", "default", "via", here)
    # An API server looks for the address that it is reached at along the default route.
    run("ip", "route", "add", "default", "via", ADDRESSES[NAME])


def unwire():
    for there in NAMESPACES.values():
        tried("ip", "netns", "del", there)


class Volumes:
    """The directories of a pod of `agents`, each written as kubelet does: whole, by a link that is put in place."""

    def __init__(self, directory):
        self.directory, self.written = directory, 0
        for name in ("run", "trust"):
            (directory / name).mkdir(parents=True)
            os.chown(directory / name, UID, UID)

    def are_there(self):
        """Whether the operator has written all of them."""
        return self._asked()[0] == 0

    def refresh(self):
        """Takes over what the API server has now."""
        status, output = self._asked()
        replicas.demand(status, output)
        policy, ca, credentials, pod = json.loads(output)["items"]
        self._write("policy", {name: text.encode() for name, text in policy["data"].items()})
        for volume, secret in (("ca", ca), ("credentials", credentials)):
            data = secret.get("data", {}).items()
            self._write(volume, {name: base64.b64decode(value) for name, value in data})
        metadata = pod["metadata"]
        lines = {
            kind: "\n".join(f"{name}={json.dumps(value)}" for name, value in metadata.get(kind, {}).items()) for kind in ("labels", "annotations")
        }
        self._write("podinfo", {kind: text.encode() for kind, text in lines.items()})

    def _asked(self):
        named = ["configmap/postern-policy", "secret/postern-ca", "secret/postern-credentials", f"pod/{NAME}"]
        return replicas.kubectl("-n", replicas.AGENTS, "get", *named, "-o", "json")

    def _write(self, volume, files):
        self.written += 1
        place = self.directory / volume
        version = place / f"..{self.written}"
        version.mkdir(parents=True)
        for name, content in files.items():
            (version / name).write_bytes(content)
            if not (place / name).is_symlink():
                (place / name).symlink_to(f"..data/{name}")
        (place / "..new").symlink_to(version.name)
        before = (place / "..data").resolve() if (place / "..data").exists() else None
        (place / "..new").rename(place / "..data")
        for gone in [each for each in place.iterdir() if each.is_symlink() and not each.exists()]:
            gone.unlink()
        if before:
            shutil.rmtree(before)


class Gateway:
    """A process of the gateway and its admin port."""

    def __init__(self, name, processes):
        self.name, self.processes, self.admin = name, processes, f"{ADDRESSES[name]}:{ADMIN}"

    def start(self, command, environment):
        base = {"PATH": os.environ["PATH"], "POSTERN_INTERCEPT": "1"}
        self.processes.start(self.name, *in_pod(self.name, *identity(command)), environment=base | environment)
        if not becomes(self.is_ready):
            raise RuntimeError(f"{self.name} is not ready: {self.processes.log(self.name).read_text()[-2000:]}")

    def is_ready(self):
        try:
            return urllib.request.urlopen(f"http://{self.admin}/readyz", timeout=5).status == 200
        except OSError:
            return False

    def metric(self, name, **labels):
        """The sum of a metric over all series with these labels, or None where there is none."""
        with urllib.request.urlopen(f"http://{self.admin}/metrics", timeout=5) as answer:
            return metric(answer.read().decode(), name, **labels)


def identity(command):
    """A command as the gateway's user, without any capability."""
    return [*("setpriv", "--reuid", UID, "--regid", UID, "--clear-groups"), *("--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"), *command]


def in_pod(name, *command):
    return within(NAMESPACES[name], *command)
