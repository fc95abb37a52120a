"""An API server asked by raw requests as the user of KUBECONFIG, or as anybody whom that user may impersonate."""

import base64
import http.client
import json
import ssl
import subprocess
import tempfile
import urllib.parse
from pathlib import Path

PATIENCE = 60
JSON, MERGE, APPLY = "application/json", "application/merge-patch+json", "application/apply-patch+yaml"
STRATEGIC = "application/strategic-merge-patch+json"


class Administration:
    """One connection to the API server of the current context."""

    def __init__(self):
        view = subprocess.run(["kubectl", "config", "view", "--raw", "--minify", "-o", "json"], check=True, capture_output=True)
        config = json.loads(view.stdout)
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.address = urllib.parse.urlsplit(cluster["server"]).netloc
        self.tls = ssl.create_default_context(cadata=decoded(cluster["certificate-authority-data"]))
        with tempfile.TemporaryDirectory() as directory:
            certificate, key = Path(directory, "client.crt"), Path(directory, "client.key")
            certificate.write_text(decoded(user["client-certificate-data"]))
            key.write_text(decoded(user["client-key-data"]))
            self.tls.load_cert_chain(certificate, key)
        self.connection = http.client.HTTPSConnection(self.address, timeout=PATIENCE, context=self.tls)

    def ask(self, method, path, body=None, kind=JSON, as_user=None):
        """The status and what is said: an object, or text."""
        headers = {"content-type": kind} | ({"impersonate-user": as_user} if as_user else {})
        self.connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = self.connection.getresponse()
        text = answer.read().decode()
        if answer.status == 101 or answer.will_close:
            self.connection.close()
        return answer.status, json.loads(text) if "json" in (answer.headers["content-type"] or "") else text

    def must(self, method, path, body=None, kind=JSON):
        """Asks, and fails unless the request succeeds."""
        status, answer = self.ask(method, path, body, kind)
        if status >= 300:
            raise RuntimeError(f"{method} {path}: {status} {said(answer)}")
        return answer


def said(answer):
    return answer.get("message", "") if isinstance(answer, dict) else answer


def decoded(text):
    return base64.b64decode(text).decode()
