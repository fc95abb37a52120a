"""etcd and kube-apiserver on loopback, without a node and without controllers."""

import os

import certificates
import servers
from commands import run, tried
from ports import LOOPBACK, reserved
from processes import Processes
from servers import executable
from waiting import becomes


class ApiServer:
    """Starts both and makes them those of kubectl and helm in this process; leaving it ends them."""

    def __init__(self, directory):
        self.directory, self.processes = directory, Processes(directory)

    def __enter__(self):
        servers.build()
        try:
            kubeconfig = start(self.directory, self.processes)
        except BaseException:
            self.__exit__()
            raise
        os.environ |= {"KUBECONFIG": str(kubeconfig), "PATH": f"{servers.BIN}:{os.environ['PATH']}"}
        return self

    def __exit__(self, *_):
        for name in self.processes.names():
            self.processes.stop(name)


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

    becomes(lambda: serves() or not processes.is_alive("kube-apiserver"))
    if not serves():
        raise RuntimeError(f"kube-apiserver is not ready: {run('tail', '-n', '5', processes.log('kube-apiserver'))}")
    return kubeconfig
