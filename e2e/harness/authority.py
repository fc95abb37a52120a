"""Certificate authorities and the leaves that they issue, by OpenSSL."""

from commands import run

EC = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30"]
AUTHORITY = ["-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign,cRLSign"]
LEAF = ["-addext", "basicConstraints=critical,CA:FALSE", "-addext", "keyUsage=critical,digitalSignature"]


class Authority:
    """A self-signed authority in a directory, as `NAME.crt` and `NAME.key`."""

    def __init__(self, directory, name, subject):
        self.directory, self.certificate, self.key = directory, directory / f"{name}.crt", directory / f"{name}.key"
        if not self.certificate.exists():
            self._make(self.certificate, self.key, f"/CN={subject}", AUTHORITY)

    def issue(self, name, subject, names=(), usage="serverAuth,clientAuth"):
        """A leaf for `subject`; `names` are alternative ones as OpenSSL writes them."""
        certificate, key = self.directory / f"{name}.crt", self.directory / f"{name}.key"
        if not certificate.exists():
            signed = ["-CA", self.certificate, "-CAkey", self.key, "-addext", f"extendedKeyUsage={usage}"]
            alternative = ["-addext", f"subjectAltName={','.join(names)}"] if names else []
            self._make(certificate, key, subject, [*LEAF, *signed, *alternative])
        return certificate, key

    @staticmethod
    def _make(certificate, key, subject, options):
        run("openssl", "req", "-x509", "-out", certificate, "-keyout", key, "-subj", subject, *EC, *options)
