"""Asks for a page over and over, each time on a new connection, and prints who answered and when: HOST [ADDRESS]."""

import http.client
import json
import select
import socket
import ssl
import sys
import time

host, address = sys.argv[1], sys.argv[-1]
tls = ssl.create_default_context()


def asked():
    with socket.create_connection((address, 443), 5) as plain, tls.wrap_socket(plain, server_hostname=host) as secured:
        issuer = dict(pair for names in secured.getpeercert()["issuer"] for pair in names)
        secured.sendall(f"GET /load HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        answer = http.client.HTTPResponse(secured)
        answer.begin()
        return {"issuer": issuer.get("commonName"), "status": answer.status, "body": answer.read().decode()[:100]}


# A line of standard input, or its end, ends it; the pause between requests is the wait for that.
while not select.select([sys.stdin], [], [], 0.05)[0]:
    try:
        said = asked()
    except (OSError, http.client.HTTPException) as error:
        said = {"error": repr(error)}
    print(json.dumps({"time": time.time()} | said), flush=True)
