"""Images without a registry: pause, the agent's, and those of Postern."""

import hashlib
import io
import json
import os
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

from commands import run
from servers import CACHE

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
IMAGES = CACHE / "images"
PAUSE, AGENT = "localhost/pause:3", "localhost/agent:e2e"
# Debian's, for whichever client an agent brings.
PACKAGES = "python3,curl,nodejs,iptables,nftables,iproute2,ca-certificates"
SDK = ["anthropic==2.12.0"]
GATEWAY, OPERATOR, TAG = "ghcr.io/postern-dev/postern-gateway", "ghcr.io/postern-dev/postern-operator", "e2e"
# The gateway's executable in its image, which is static and so runs on the node too.
EXECUTABLE = ROOT / "target/images/roots/gateway/postern"
PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PAUSE_SOURCE = """
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
static void end(int number) { (void)number; _exit(0); }
int main(void) { signal(SIGINT, end); signal(SIGTERM, end); signal(SIGCHLD, SIG_IGN); for (;;) pause(); }
"""


def pause():
    """Returns the image that holds a pod's namespaces."""

    def fill(root):
        (root / "pause.c").write_text(PAUSE_SOURCE)
        run("cc", "-Os", "-static", "-s", "-o", root / "pause", root / "pause.c")
        (root / "pause.c").unlink()

    return cached(PAUSE, PAUSE_SOURCE, lambda: [layer_of(fill)], {"Entrypoint": ["/pause"]})


def agent():
    """Debian with curl, Python, Node, an SDK and the tools of an attacker."""

    def system():
        directory = Path(tempfile.mkdtemp(dir=IMAGES))
        exclude = "--dpkgopt=path-exclude=/usr/share/{doc,locale,man,info}/*"
        run("mmdebstrap", "--quiet", "--variant=essential", f"--include={PACKAGES}", exclude, "bookworm", directory / "system.tar")
        layer = (directory / "system.tar").read_bytes()
        shutil.rmtree(directory)
        return layer

    def sdk(root):
        libraries = root / "opt/sdk"
        # The interpreter is the image's, not the one that runs this.
        fitting = ["--python-version", "3.11", "--only-binary=:all:", "--target", libraries]
        run(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--root-user-action=ignore", *fitting, *SDK)

    recipe = f"{PACKAGES} {SDK}"
    return cached(AGENT, recipe, lambda: [system(), layer_of(sdk)], {"Env": [PATH, "PYTHONPATH=/opt/sdk"]})


def postern():
    """Makes the gateway's and the operator's images from this checkout by what makes the released ones."""
    print(run("scripts/images.sh", "--debug", "--tag", TAG, cwd=ROOT), end="", flush=True)


def postern_archives():
    return [ROOT / "target/images" / f"{name}.tar" for name in ("gateway", "operator")]


def agent_as(name, user):
    """The archive of the agent's image under another name, whose `USER` is another one."""
    with tarfile.open(agent()) as archive:
        (manifest,) = json.load(archive.extractfile("manifest.json"))
        settings = json.load(archive.extractfile(manifest["Config"]))["config"]
        layers = [archive.extractfile(layer).read() for layer in manifest["Layers"]]
    return write(IMAGES / f"{label(name)}.tar", name, layers, settings | {"User": user})


def label(name):
    """`localhost/agent:e2e` without its registry and tag."""
    return name.split("/")[-1].split(":")[0]


def cached(name, recipe, layers, settings):
    """The archive of an image that is made again where its recipe is another one."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    archive = IMAGES / f"{label(name)}-{hashlib.sha256(recipe.encode()).hexdigest()[:12]}.tar"
    if not archive.exists():
        write(archive, name, layers(), settings)
    return archive


def layer_of(fill):
    """A tar archive of a directory, all of it root's."""
    with tempfile.TemporaryDirectory() as directory:
        fill(Path(directory))
        layer = io.BytesIO()
        with tarfile.open(fileobj=layer, mode="w") as archive:
            for name in sorted(os.listdir(directory)):
                archive.add(os.path.join(directory, name), arcname=name, filter=roots)
        return layer.getvalue()


def roots(member):
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


def write(target, name, layers, settings):
    """An archive as `docker save` writes it, which containerd imports."""
    digests = [hashlib.sha256(layer).hexdigest() for layer in layers]
    filesystem = {"type": "layers", "diff_ids": [f"sha256:{digest}" for digest in digests]}
    image = {"architecture": "amd64", "os": "linux", "config": {"Env": [PATH]} | settings, "rootfs": filesystem}
    described = json.dumps(image).encode()
    config = f"{hashlib.sha256(described).hexdigest()}.json"
    files = [f"{digest}/layer.tar" for digest in digests]
    manifest = json.dumps([{"Config": config, "RepoTags": [name], "Layers": files}]).encode()
    unfinished = target.with_suffix(".unfinished")
    with tarfile.open(unfinished, "w") as archive:
        for member, data in [(config, described), *zip(files, layers), ("manifest.json", manifest)]:
            entry = tarfile.TarInfo(member)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    unfinished.rename(target)
    return target
