"""A protocol that is neither TLS nor HTTP: what the server says, after each thing said: speak.py HOST PORT HEX..."""

import json
import socket
import sys

host, port, *says = sys.argv[1:]
with socket.create_connection((host, int(port)), timeout=10) as connection:
    heard = []
    for each in says:
        # Nothing to say means that the server speaks first.
        connection.sendall(bytes.fromhex(each))
        heard.append(connection.recv(4096).decode(errors="replace"))
    print(json.dumps({"heard": heard, "peer": connection.getpeername()[0]}))
