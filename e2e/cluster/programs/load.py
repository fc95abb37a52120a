"""Asks for pages by number, each on a new connection, and prints which, when it began, and who answered when: HOST [ADDRESS]."""

import http.client
import itertools
import json
import select
import socket
import ssl
import sys
import time

host, address = sys.argv[1], sys.argv[-1]
tls, numbers = ssl.create_default_context(), itertools.count(1)


def asked(page):
    with socket.create_connection((address, 443), 5) as plain, tls.wrap_socket(plain, server_hostname=host) as secured:
        issuer = dict(pair for names in secured.getpeercert()["issuer"] for pair in names)
        secured.sendall(f"GET {page} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        answer = http.client.HTTPResponse(secured)
        answer.begin()
        return {"issuer": issuer.get("commonName"), "status": answer.status, "body": answer.read().decode()[:100]}


# A line of standard input, or its end, ends it; the pause between requests is the wait for that.
while not select.select([sys.stdin], [], [], 0.05)[0]:
    page, began = f"/load/{next(numbers)}", time.time()
    try:
        output = asked(page)
    except (OSError, http.client.HTTPException) as error:
        output = {"error": repr(error)}
    print(json.dumps({"page": page, "began": began, "time": time.time()} | output), flush=True)
