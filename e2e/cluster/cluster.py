"""A Kubernetes of one node in network namespaces of its own: etcd, its servers and containerd, without a registry.

python3 e2e/run.py cluster/cluster up | down
"""

import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
import uuid
from pathlib import Path

import certificates
import images
import network
import servers
from api import Api
from commands import run, tried
from namespaces import within
from network import NODE, NODE_ADDRESS, RESOLVER
from processes import Processes
from servers import executable
from waiting import becomes

RUN = servers.CACHE / "run"
NODE_NAME = "e2e-node"
SERVICES, PODS = "10.96.0.0/16", "10.244.0.0/16"
CONTAINERD = RUN / "containerd.sock"
# kubelet writes these for the whole machine; they are put back.
MACHINE_SETTINGS = [
    *("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops"),
    *("kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes"),
]
# In the order of their end.
STARTED = ["kubelet", "kube-proxy", "kube-scheduler", "kube-controller-manager", "containerd", "kube-apiserver", "etcd"]
PATIENCE = 180
# Bytes that images, snapshots and the store take; kubelet starts no pod where the disk is nearly full.
DISK = 1 << 30


class Cluster:
    """`up` brings it up from nothing and `down` removes all of it; one a machine at a time, held by one program."""

    def __init__(self):
        servers.CACHE.mkdir(parents=True, exist_ok=True)
        self.lock = (servers.CACHE / "lock").open("w")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit(f"another program holds the cluster of this machine ({self.lock.name}): wait for its end")
        self.pki, self.processes = RUN / "pki", Processes(RUN)
        self.kubeconfig = self.pki / "admin.kubeconfig"

    def up(self):
        """Returns once the node is Ready. What already runs goes on."""
        RUN.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(RUN).free
        if free < DISK:
            raise RuntimeError(f"{RUN} has {free} bytes free, and the node takes up to {DISK}: make room")
        if not network.exists():
            network.build()
        certificates.prepare(self.pki, NODE_ADDRESS[4], NODE_NAME)
        self.api = Api(self.pki, NODE_ADDRESS[4])
        self._start_api()
        self._start_containerd()
        self._start_controllers()
        self._start_kubelet()
        self._demand("kubelet", lambda: self._node_is_ready() and self.api.exists("/api/v1/namespaces/default/serviceaccounts/default"))

    def down(self):
        """Ends what an `up` of this or an earlier run started, by the processes it recorded."""
        for name in [*(set(self.processes.names()) - set(STARTED)), *STARTED]:
            if name == "containerd" and self.processes.is_alive(name):
                self._remove_containers()
            self.processes.stop(name)
        mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
        for mount in sorted((mount for mount in mounts if mount.startswith(f"{RUN}/")), reverse=True):
            subprocess.run(["umount", "-l", mount], capture_output=True, check=False)
        network.remove()
        for namespace in RUN.glob("netns/cni-*"):
            subprocess.run(["ip", "netns", "del", namespace.name], capture_output=True, check=False)
        self._restore_machine()
        for group in Path("/sys/fs/cgroup").glob("*/kubepods"):
            for directory, *_ in os.walk(group, topdown=False):
                tried("rmdir", directory)
        shutil.rmtree(RUN, ignore_errors=True)

    def ctr(self, *arguments):
        """containerd's own client, in the node's namespace."""
        return run(*within(NODE, "ctr", "-a", CONTAINERD, "-n", "k8s.io", *arguments))

    def inside_container(self, identifier, *command):
        """A command in a container, with its user, variables and capabilities, that needs no API server."""
        execution = ["tasks", "exec", "--exec-id", uuid.uuid4().hex, identifier]
        return within(NODE, "ctr", "-a", CONTAINERD, "-n", "k8s.io", *execution, *command)

    def load(self, archive):
        """Makes an image known to the node."""
        self.ctr("images", "import", archive)

    def stop_api(self):
        self.processes.stop("kube-apiserver")

    def start_api(self):
        self._start_api()

    def _start(self, name, *command):
        self.processes.start(name, *within(NODE, *command))

    def _start_api(self):
        pki, clients, peers = self.pki, "http://127.0.0.1:2379", "http://127.0.0.1:2380"
        data = RUN / "etcd"
        data.mkdir(mode=0o700, exist_ok=True)
        urls = ["--listen-client-urls", clients, "--advertise-client-urls", clients, "--listen-peer-urls", peers]
        member = ["--initial-advertise-peer-urls", peers, "--initial-cluster", f"e2e={peers}", "--unsafe-no-fsync"]
        self._start("etcd", executable("etcd"), "--name", "e2e", "--data-dir", data, *urls, *member)
        self._start(
            "kube-apiserver", executable("kube-apiserver"), f"--etcd-servers={clients}", f"--advertise-address={NODE_ADDRESS[4]}",
            "--secure-port=6443", f"--service-cluster-ip-range={SERVICES}", "--allow-privileged=true",
            *(f"--tls-cert-file={pki}/apiserver.crt", f"--tls-private-key-file={pki}/apiserver.key", f"--client-ca-file={pki}/ca.crt"),
            *("--service-account-issuer=https://kubernetes.default.svc", f"--service-account-signing-key-file={pki}/sa.key"),
            *(f"--service-account-key-file={pki}/sa.pub", "--authorization-mode=Node,RBAC"),
            "--enable-admission-plugins=NodeRestriction",
            f"--kubelet-client-certificate={pki}/apiserver-kubelet-client.crt",
            *(f"--kubelet-client-key={pki}/apiserver-kubelet-client.key", f"--kubelet-certificate-authority={pki}/ca.crt"),
            *(f"--requestheader-client-ca-file={pki}/ca.crt", "--requestheader-allowed-names=front-proxy-client"),
            *("--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group"),
            *("--requestheader-extra-headers-prefix=X-Remote-Extra-", f"--proxy-client-cert-file={pki}/front-proxy-client.crt"),
            *(f"--proxy-client-key-file={pki}/front-proxy-client.key", "--enable-aggregator-routing=true"),
            # The node's name is known to nobody.
            "--kubelet-preferred-address-types=InternalIP",
        )  # fmt: skip
        self._demand("kube-apiserver", lambda: self.api.is_ready())

    def _start_containerd(self):
        addresses = [[{"subnet": "10.244.0.0/24"}], [{"subnet": "fd00:244::/64"}]]
        routes = [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}]
        ipam = {"type": "host-local", "dataDir": f"{RUN}/cni-addresses", "ranges": addresses, "routes": routes}
        bridge = {"type": "bridge", "bridge": network.BRIDGE, "isGateway": True, "ipMasq": True, "hairpinMode": True, "ipam": ipam}
        (RUN / "cni").mkdir(exist_ok=True)
        plugins = {"cniVersion": "0.4.0", "name": "e2e", "plugins": [bridge, {"type": "portmap", "capabilities": {"portMappings": True}}]}
        (RUN / "cni/10-e2e.conflist").write_text(json.dumps(plugins))
        (RUN / "containerd.toml").write_text(CONTAINERD_SETTINGS)
        self._start("containerd", "containerd", "--config", RUN / "containerd.toml")
        self._demand("containerd", lambda: tried("ctr", "-a", CONTAINERD, "version")[0] == 0)
        self.load(images.pause())

    def _start_controllers(self):
        for name in ("kube-controller-manager", "kube-scheduler"):
            owned = f"{self.pki}/{name}.kubeconfig"
            settings = [f"--{each}kubeconfig={owned}" for each in ("", "authentication-", "authorization-")]
            self._start(name, executable(name), *settings, "--bind-address=127.0.0.1", "--leader-elect=false", *self._more(name))

    def _more(self, name):
        if name == "kube-scheduler":
            return []
        return [
            *(f"--service-account-private-key-file={self.pki}/sa.key", f"--root-ca-file={self.pki}/ca.crt"),
            *("--use-service-account-credentials=true", "--allocate-node-cidrs=true", f"--cluster-cidr={PODS}"),
            *(f"--cluster-signing-cert-file={self.pki}/ca.crt", f"--cluster-signing-key-file={self.pki}/ca.key"),
        ]

    def _start_kubelet(self):
        self._save_machine()
        (RUN / "resolv.conf").write_text("")
        (RUN / "kubelet.json").write_text(
            json.dumps(
                {
                    "apiVersion": "kubelet.config.k8s.io/v1beta1",
                    "kind": "KubeletConfiguration",
                    "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True}, "x509": {"clientCAFile": f"{self.pki}/ca.crt"}},
                    "authorization": {"mode": "Webhook"},
                    "tlsCertFile": f"{self.pki}/kubelet.crt",
                    "tlsPrivateKeyFile": f"{self.pki}/kubelet.key",
                    "cgroupDriver": "cgroupfs",
                    "clusterDNS": [RESOLVER],
                    "clusterDomain": "cluster.local",
                    "resolvConf": f"{RUN}/resolv.conf",
                    "failSwapOn": False,
                    "evictionHard": {"memory.available": "100Mi", "nodefs.available": "100Mi", "imagefs.available": "100Mi"},
                    "imageGCHighThresholdPercent": 100,
                    # From 1.35 on kubelet refuses cgroup v1 otherwise.
                    "failCgroupV1": False,
                }
            )
        )
        settings = [f"--config={RUN}/kubelet.json", f"--kubeconfig={self.pki}/kubelet.kubeconfig", f"--root-dir={RUN}/kubelet"]
        node = [f"--hostname-override={NODE_NAME}", f"--node-ip={NODE_ADDRESS[4]}", f"--container-runtime-endpoint=unix://{CONTAINERD}"]
        # Without CAP_SYS_RESOURCE nobody lowers it, neither kubelet nor runc.
        self._start("kubelet", executable("kubelet"), *settings, *node, "--oom-score-adj=0")
        tracking = ["max-per-core=0", "min=0", "tcp-timeout-established=0", "tcp-timeout-close-wait=0"]
        self._start(
            "kube-proxy", executable("kube-proxy"), f"--kubeconfig={self.pki}/kube-proxy.kubeconfig", "--proxy-mode=iptables",
            "--oom-score-adj=0", f"--cluster-cidr={PODS}", f"--hostname-override={NODE_NAME}", *(f"--conntrack-{each}" for each in tracking),
            "--metrics-bind-address=127.0.0.1:10249", "--healthz-bind-address=127.0.0.1:10256",
        )  # fmt: skip

    def _node_is_ready(self):
        status, node = self.api.ask("GET", f"/api/v1/nodes/{NODE_NAME}")
        conditions = node["status"].get("conditions", []) if status == 200 else []
        return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

    def _demand(self, name, holds):
        if not becomes(holds, PATIENCE):
            log = self.processes.log(name).read_text()[-1500:]
            raise RuntimeError(f"{name} does not come to where it should:\n{log}")

    def _remove_containers(self):
        """Ends what runs in pods, which would hold mounts and namespaces."""
        client = within(NODE, "ctr", "-a", CONTAINERD, "-n", "k8s.io")
        for task in tried(*client, "tasks", "ls", "-q")[1].split():
            tried(*client, "tasks", "kill", "-s", "KILL", task, timeout=20)
        becomes(lambda: "RUNNING" not in tried(*client, "tasks", "ls", timeout=20)[1], 10)
        for task in tried(*client, "tasks", "ls", "-q")[1].split():
            tried(*client, "tasks", "rm", "-f", task, timeout=20)
        for container in tried(*client, "containers", "ls", "-q")[1].split():
            shown = tried(*client, "containers", "info", container)[1]
            for word in shown.split('"'):
                if word.startswith("/run/netns/cni-") or word.startswith("/var/run/netns/cni-"):
                    tried("ip", "netns", "del", Path(word).name)
            tried(*client, "containers", "rm", container, timeout=20)

    def _save_machine(self):
        saved = RUN / "machine.json"
        if not saved.exists():
            saved.write_text(json.dumps({key: Path("/proc/sys", key).read_text().strip() for key in MACHINE_SETTINGS}))

    def _restore_machine(self):
        saved = RUN / "machine.json"
        if saved.exists():
            for key, value in json.loads(saved.read_text()).items():
                Path("/proc/sys", key).write_text(value)


# runc could not lower oom_score_adj without CAP_SYS_RESOURCE, and says "can't get final child's PID from pipe: EOF".
CONTAINERD_SETTINGS = f"""
version = 2
root = "{RUN}/containerd"
state = "{RUN}/containerd-state"
[grpc]
  address = "{CONTAINERD}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{images.PAUSE}"
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{RUN}/cni"
"""


def main():
    if sys.argv[1:] == ["down"]:
        Cluster().down()
    elif sys.argv[1:] == ["up"]:
        servers.build()
        started = time.monotonic()
        cluster = Cluster()
        cluster.up()
        reach = " ".join(map(str, within(NODE, executable("kubectl"), "--kubeconfig", cluster.kubeconfig)))
        print(f"the node is Ready after {time.monotonic() - started:.0f} s: {reach} get pods -A")
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
