"""The accomplice outside: it dials the pod, and tries the explicit listener."""

import ssl

from topology import KINDS, PATIENCE, POD


def dialled(topology, family, port, says=b"", patience=PATIENCE):
    """Returns the answer of a port of the pod to the accomplice, or the error."""
    with topology.socket("accomplice", family, KINDS["tcp"]) as dialling:
        dialling.settimeout(patience)
        try:
            dialling.connect((POD[family], port))
            dialling.sendall(says)
            return dialling.recv(64).decode(errors="replace")
        except OSError as error:
            return repr(error)


def proxied(topology, proxy, roots, patience):
    """A request with the placeholder, sent by the accomplice through CONNECT; `patience` is for each answer."""
    context = ssl.create_default_context(cafile=roots)
    with topology.socket("accomplice", 4, KINDS["tcp"]) as tunnel:
        tunnel.settimeout(patience)
        tunnel.connect(proxy)
        tunnel.sendall(b"CONNECT api.example.com:443 HTTP/1.1\r\nHost: api.example.com:443\r\n\r\n")
        tunnel.recv(4096)
        with context.wrap_socket(tunnel, server_hostname="api.example.com") as secured:
            head = "GET / HTTP/1.1\r\nHost: api.example.com\r\nAuthorization: Bearer postern:api\r\n"
            secured.sendall(f"{head}Connection: close\r\n\r\n".encode())
            return secured.recv(4096)
