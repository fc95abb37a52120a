"""Runs what is proven on an API server without a node: of the chart its definitions, rendering, backstops and lifecycle, of the operator two replicas.

python3 e2e/cluster/alone.py    # etcd and kube-apiserver on loopback, ended again; KVER chooses the version of Kubernetes

Exit status 1 where a check fails.
"""

import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import certificates
import servers
from api import PATIENCE, becomes
from commands import run, tried
from ports import LOOPBACK, reserved
from processes import Processes
from servers import executable

PARTS = ["crds.py", "rendering.py", "backstops.py", "lifecycle.py", "replicas.py"]
STARTED = ["kube-apiserver", "etcd"]


def main():
    servers.build()
    with tempfile.TemporaryDirectory() as directory:
        processes = Processes(Path(directory))
        try:
            kubeconfig = start(Path(directory), processes)
            environment = os.environ | {"KUBECONFIG": str(kubeconfig), "PATH": f"{servers.BIN}:{os.environ['PATH']}"}
            failed = [part for part in PARTS if not passes(part, environment)]
        finally:
            for name in STARTED:
                processes.stop(name)
    print(
        f"failed: {', '.join(failed)}" if failed else f"all of {', '.join(PARTS)} pass on Kubernetes {servers.VERSION}"
    )
    return 1 if failed else 0


def passes(part, environment):
    print(f"== {part}", flush=True)
    # No Service may lead to a loopback address.
    arguments = [own_address()] if part == "replicas.py" else []
    command = [sys.executable, Path(__file__).parent / part, *arguments]
    return subprocess.run(command, env=environment, check=False).returncode == 0


def start(directory, processes):
    """Starts both; the kubeconfig of the administrator, once the API server is ready."""
    clients, peers, api = (reserved() for _ in range(3))
    pki = directory / "pki"
    certificates.prepare(pki, LOOPBACK, "nobody")
    certificates.kubeconfig(pki, "admin", f"https://{LOOPBACK}:{api}")
    etcd, peer = f"http://{LOOPBACK}:{clients}", f"http://{LOOPBACK}:{peers}"
    urls = ["--listen-client-urls", etcd, "--advertise-client-urls", etcd, "--listen-peer-urls", peer]
    member = ["--initial-advertise-peer-urls", peer, "--initial-cluster", f"alone={peer}", "--unsafe-no-fsync"]
    processes.start("etcd", executable("etcd"), "--name", "alone", "--data-dir", directory / "etcd", *urls, *member)
    processes.start(
        "kube-apiserver", executable("kube-apiserver"), f"--etcd-servers={etcd}", f"--bind-address={LOOPBACK}", f"--secure-port={api}",
        *("--service-cluster-ip-range=10.96.0.0/16", "--allow-privileged=true", "--authorization-mode=RBAC"),
        *(f"--tls-cert-file={pki}/apiserver.crt", f"--tls-private-key-file={pki}/apiserver.key", f"--client-ca-file={pki}/ca.crt"),
        *("--service-account-issuer=https://kubernetes.default.svc", f"--service-account-signing-key-file={pki}/sa.key"),
        f"--service-account-key-file={pki}/sa.pub",
        # No controller makes service accounts, and none looks for endpoints: a webhook's Service is seen to have none.
        *("--disable-admission-plugins=ServiceAccount", "--endpoint-reconciler-type=none", "--enable-aggregator-routing=true"),
    )  # fmt: skip
    kubeconfig = pki / "admin.kubeconfig"
    asked = (executable("kubectl"), "--kubeconfig", kubeconfig, "get", "--raw")

    def serves():
        """It makes the namespaces of its own a moment after it is ready."""
        return all(tried(*asked, path)[0] == 0 for path in ("/readyz", "/api/v1/namespaces/kube-system"))

    becomes(lambda: serves() or not processes.is_alive("kube-apiserver"), PATIENCE)
    if not serves():
        raise RuntimeError(f"kube-apiserver is not ready: {run('tail', '-n', '5', processes.log('kube-apiserver'))}")
    return kubeconfig


def own_address():
    """This machine's address on its way out; nothing is sent there."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        asked.connect(("198.51.100.1", 9))
        return asked.getsockname()[0]


if __name__ == "__main__":
    sys.exit(main())
