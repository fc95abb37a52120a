"""Prints the issuer and the answer of an https URL. https.py HOST [ADDRESS]"""

import json
import socket
import ssl
import sys
import time
from pathlib import Path

ROOTS = Path(__file__).resolve().parents[1] / "roots.pem"


def fetch(host, address):
    context = ssl.create_default_context(cafile=ROOTS)
    with socket.create_connection((address, 443), timeout=10) as connection:
        with context.wrap_socket(connection, server_hostname=host) as secured:
            issuer = dict(field[0] for field in secured.getpeercert()["issuer"])
            fields = f"Host: {host}\r\nAuthorization: Bearer postern:api\r\nConnection: close\r\n"
            secured.sendall(f"GET /public HTTP/1.1\r\n{fields}\r\n".encode())
            answer = b""
            while data := secured.recv(4096):
                answer += data
    return {"issuer": issuer["commonName"], "answer": answer.decode(), "peer": address}


host, address, *_ = [*sys.argv[1:], sys.argv[1]]
started = time.monotonic()
try:
    seen = fetch(host, address)
except OSError as error:
    seen = {"issuer": "", "answer": repr(error)}
print(json.dumps(seen | {"seconds": time.monotonic() - started}))
