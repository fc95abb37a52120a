"""Names a host in TLS at an address of its own choice: hello.py FAMILY ADDRESS PORT NAME."""

import json
import socket
import ssl
import sys

from tried import FAMILIES, PATIENCE, destination, tried


def greeted(family, to, name):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.socket(FAMILIES[family]) as connection:
        connection.settimeout(PATIENCE)
        connection.connect(to)
        context.wrap_socket(connection, server_hostname=name).close()


family, address, port, name = sys.argv[1:]
print(json.dumps(tried(greeted, family, destination(family, address, int(port)), name)))
