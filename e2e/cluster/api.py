"""The cluster's API, asked over HTTPS from the node's namespace."""

import http.client
import json
import ssl
import urllib.parse

from namespaces import inside
from network import NODE

ANSWER = 60
MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"


class Api:
    """Asks as the cluster's administrator."""

    def __init__(self, pki, address):
        self.address = address
        self.tls = ssl.create_default_context(cafile=pki / "ca.crt")
        self.tls.load_cert_chain(pki / "admin.crt", pki / "admin.key")

    def ask(self, method, path, body=None, kind="application/json"):
        """Status and answer, or (None, reason) where nobody answers."""
        try:
            with inside(NODE):
                connection = http.client.HTTPSConnection(self.address, 6443, timeout=ANSWER, context=self.tls)
                connection.connect()
            connection.request(method, path, None if body is None else json.dumps(body), {"content-type": kind})
            answer = connection.getresponse()
            text = answer.read().decode()
            connection.close()
        except (OSError, http.client.HTTPException) as error:
            return None, repr(error)
        return answer.status, json.loads(text) if "json" in answer.headers["content-type"] else text

    def take(self, path):
        """An object or a list, which must be there."""
        status, answer = self.ask("GET", path)
        if status != 200:
            raise RuntimeError(f"GET {path}: {status} {answer}")
        return answer

    def found(self, path):
        """An object, or None where it is not there."""
        status, answer = self.ask("GET", path)
        return answer if status == 200 else None

    def exists(self, path):
        return self.found(path) is not None

    def is_ready(self):
        return self.ask("GET", "/readyz")[0] == 200

    def items(self, path, labels=""):
        query = f"?labelSelector={urllib.parse.quote(labels)}" if labels else ""
        return self.take(path + query)["items"]

    def merge(self, path, body):
        """Changes an object by a merge patch; status and answer."""
        return self.ask("PATCH", path, body, MERGE)
