"""A certificate authority of the cluster, the certificates of its servers, and their kubeconfigs."""

import base64
import json

from commands import run

EC = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30"]
AUTHORITY = ["-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign,cRLSign"]
LEAF = ["-addext", "basicConstraints=critical,CA:FALSE", "-addext", "keyUsage=critical,digitalSignature"]
API_NAMES = [
    *(
        "DNS:kubernetes",
        "DNS:kubernetes.default",
        "DNS:kubernetes.default.svc",
        "DNS:kubernetes.default.svc.cluster.local",
    ),
    *("DNS:localhost", "IP:127.0.0.1", "IP:10.96.0.1"),
]


class Authority:
    """A self-signed one in a directory, as `NAME.crt` and `NAME.key`."""

    def __init__(self, directory, name, subject):
        self.directory, self.certificate, self.key = directory, directory / f"{name}.crt", directory / f"{name}.key"
        if not self.certificate.exists():
            run(
                "openssl",
                "req",
                "-x509",
                "-out",
                self.certificate,
                "-keyout",
                self.key,
                "-subj",
                f"/CN={subject}",
                *EC,
                *AUTHORITY,
            )

    def issue(self, name, subject, names=(), usage="serverAuth,clientAuth"):
        """A leaf for `subject`; `names` are alternative ones as OpenSSL writes them."""
        certificate, key = self.directory / f"{name}.crt", self.directory / f"{name}.key"
        if not certificate.exists():
            more = ["-addext", f"subjectAltName={','.join(names)}"] if names else []
            signed = ["-CA", self.certificate, "-CAkey", self.key, "-addext", f"extendedKeyUsage={usage}"]
            run(
                "openssl",
                "req",
                "-x509",
                "-out",
                certificate,
                "-keyout",
                key,
                "-subj",
                subject,
                *EC,
                *LEAF,
                *signed,
                *more,
            )
        return certificate, key


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
    ca, certificate, key = (
        base64.b64encode((directory / file).read_bytes()).decode() for file in ("ca.crt", f"{name}.crt", f"{name}.key")
    )
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
