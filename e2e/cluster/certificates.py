"""The certificates of the cluster's servers, and their kubeconfigs."""

import base64
import json

from authority import Authority
from commands import run

API_NAMES = [
    *("DNS:kubernetes", "DNS:kubernetes.default", "DNS:kubernetes.default.svc", "DNS:kubernetes.default.svc.cluster.local"),
    *("DNS:localhost", "IP:127.0.0.1", "IP:10.96.0.1"),
]


def prepare(directory, address, node):
    """Everything that the servers of a cluster at `address` identify themselves with."""
    directory.mkdir(parents=True, exist_ok=True)
    authority = Authority(directory, "ca", "postern-e2e cluster")
    authority.issue("apiserver", "/CN=kube-apiserver", [*API_NAMES, f"IP:{address}"])
    authority.issue("apiserver-kubelet-client", "/O=system:masters/CN=apiserver-kubelet-client", usage="clientAuth")
    authority.issue("front-proxy-client", "/CN=front-proxy-client", usage="clientAuth")
    authority.issue("kubelet", f"/O=system:nodes/CN=system:node:{node}", [f"DNS:{node}", f"IP:{address}"])
    subjects = {"admin": "/O=system:masters/CN=admin"}
    subjects |= {name: f"/CN=system:{name}" for name in ("kube-controller-manager", "kube-scheduler", "kube-proxy")}
    for name, subject in subjects.items():
        authority.issue(name, subject, usage="clientAuth")
    for name in [*subjects, "kubelet"]:
        kubeconfig(directory, name, f"https://{address}:6443")
    if not (directory / "sa.pub").exists():
        run("openssl", "ecparam", "-genkey", "-noout", "-name", "prime256v1", "-out", directory / "sa.key")
        run("openssl", "ec", "-in", directory / "sa.key", "-pubout", "-out", directory / "sa.pub")


def kubeconfig(directory, name, server):
    ca, certificate, key = (base64.b64encode((directory / file).read_bytes()).decode() for file in ("ca.crt", f"{name}.crt", f"{name}.key"))
    (directory / f"{name}.kubeconfig").write_text(
        json.dumps(
            {  # JSON is YAML.
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "e2e", "cluster": {"server": server, "certificate-authority-data": ca}}],
                "users": [{"name": name, "user": {"client-certificate-data": certificate, "client-key-data": key}}],
                "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": name}}],
                "current-context": "e2e",
            }
        )
    )
