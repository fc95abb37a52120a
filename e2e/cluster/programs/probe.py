"""What an agent tries, one JSON object a line of standard input each, and what became of it, one line each.

{"kind": "https", "host": …, "address": …, "port": …, "method": …, "path": …, "headers": …, "body": …, "kept": …}
{"kind": "http", …}, {"kind": "tcp" | "udp", "address": …, "port": …}, {"kind": "name", "name": …}
"""

import base64
import errno
import http.client
import json
import socket
import ssl
import sys
import time

PATIENCE = 8
KEPT = {}


def https(probe):
    """On a connection of its own, or on one that is kept under a name from probe to probe."""
    connection = KEPT.get(probe.get("kept"))
    if connection is None:
        connection = connected(probe)
        if "kept" in probe:
            KEPT[probe["kept"]] = connection
    headers = {"host": probe["host"]} | probe.get("headers", {})
    connection.request(probe.get("method", "GET"), probe.get("path", "/"), probe.get("body"), headers)
    answer = connection.getresponse()
    body = answer.read().decode(errors="replace")
    shown = {name.lower(): value for name, value in answer.getheaders() if name.lower().startswith("x-postern")}
    return {
        "issuer": connection.issuer,
        "leaf": connection.leaf,
        "status": answer.status,
        "body": body[:3000],
        "headers": shown,
    }


def connected(probe):
    secured = probe["kind"] == "https"
    connection = http.client.HTTPConnection(probe["host"], timeout=PATIENCE)
    address = (probe.get("address") or probe["host"], probe.get("port", 443 if secured else 80))
    connection.sock, connection.issuer, connection.leaf = socket.create_connection(address, PATIENCE), None, None
    if secured:
        connection.sock = ssl.create_default_context().wrap_socket(connection.sock, server_hostname=probe["host"])
        issuer = dict(pair for names in connection.sock.getpeercert()["issuer"] for pair in names)
        connection.issuer = issuer.get("commonName") or str(issuer)
        connection.leaf = base64.b64encode(connection.sock.getpeercert(binary_form=True)).decode()
    # Not opened again in silence where it was closed.
    connection.auto_open = 0
    return connection


def tcp(probe):
    with socket.create_connection((probe["address"], probe["port"]), probe.get("patience", PATIENCE)) as connection:
        connection.sendall(probe.get("said", "GET / HTTP/1.0\r\n\r\n").encode())
        return {"heard": connection.recv(200).decode(errors="replace")}


def udp(probe):
    family = socket.AF_INET6 if ":" in probe["address"] else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as asking:
        asking.settimeout(PATIENCE)
        asking.connect((probe["address"], probe["port"]))
        asking.send(b"out of the pod")
        return {"heard": asking.recv(200).decode(errors="replace")}


def name(probe):
    matches = socket.getaddrinfo(probe["name"], 443, proto=socket.IPPROTO_TCP)
    return {"addresses": sorted({each[4][0] for each in matches})}


KINDS = {"https": https, "http": https, "tcp": tcp, "udp": udp, "name": name}


def tried(probe):
    started = time.monotonic()
    try:
        output = KINDS[probe["kind"]](probe)
    except (OSError, http.client.HTTPException) as error:
        KEPT.pop(probe.get("kept"), None)
        # What TLS and resolvers say has numbers of their own.
        foreign = isinstance(error, (ssl.SSLError, socket.gaierror, http.client.HTTPException)) or not error.errno
        output = {"error": repr(error) if foreign else errno.errorcode[error.errno]}
    return output | {"seconds": round(time.monotonic() - started, 3)}


for line in sys.stdin:
    print(json.dumps(tried(json.loads(line))), flush=True)
