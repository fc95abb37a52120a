"""Holds one port until its input ends: hold.py ADDRESS PORT."""

import json
import socket
import sys

address, port = sys.argv[1:]
with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM) as kept:
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    kept.bind((address, int(port)))
    kept.listen()
    print(json.dumps("held"), flush=True)
    sys.stdin.read()
