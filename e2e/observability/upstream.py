"""The stand-in for every upstream: Anthropic's answers and plain texts, over TLS."""

import socket
import ssl
import threading

import answers

INTACT = "as the upstream wrote it"
PATIENCE = 30


class Upstream:
    """Serves at an address until this program ends; `keys` are those that requests brought."""

    def __init__(self, address, certificate, key):
        self.tls, self.keys = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), set()
        self.tls.load_cert_chain(certificate, key)
        self.listener = socket.create_server((address, 443), backlog=128)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            connection, _ = self.listener.accept()
            threading.Thread(target=self._one, args=[connection], daemon=True).start()

    def _one(self, connection):
        with connection:
            connection.settimeout(PATIENCE)
            try:
                with self.tls.wrap_socket(connection, server_side=True) as secured:
                    self._serve(secured)
            except OSError:
                return

    def _serve(self, connection):
        file = connection.makefile("rb")
        while first := file.readline().decode().strip():
            headers = {}
            while line := file.readline().decode().strip():
                name, _, value = line.partition(":")
                headers[name.lower()] = value.strip()
            self.keys.add(headers.get("x-api-key"))
            body = file.read(int(headers.get("content-length", 0)))
            method, path, _ = first.split()
            connection.sendall(answers.answer(path, body) if method == "POST" else answers.whole("text/plain", INTACT))
