"""Serves on both loopbacks until its input ends, or talks to such a server: loopback.py serve | dial PORT."""

import json
import socket
import sys

FAMILIES = {"127.0.0.1": socket.AF_INET, "::1": socket.AF_INET6}


def serve():
    listeners = []
    for address, family in FAMILIES.items():
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.bind((address, listeners[0].getsockname()[1] if listeners else 0))
        listener.listen()
        listeners.append(listener)
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    datagrams.bind(listeners[0].getsockname())
    print(json.dumps(listeners[0].getsockname()[1]), flush=True)
    for listener in listeners:
        connection, _ = listener.accept()
        connection.sendall(connection.recv(64))
    question, sender = datagrams.recvfrom(64)
    datagrams.sendto(question, sender)
    sys.stdin.read()
    print("null")


def dial(port):
    seen = {}
    for address, family in FAMILIES.items():
        with socket.socket(family, socket.SOCK_STREAM) as connection:
            seen[address] = exchanged(connection, (address, port))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        seen["127.0.0.1, UDP"] = exchanged(datagrams, ("127.0.0.1", port))
    print(json.dumps(seen))


def exchanged(connection, to):
    connection.settimeout(5)
    connection.connect(to)
    connection.send(b"between containers")
    return connection.recv(64).decode()


serve() if sys.argv[1] == "serve" else dial(int(sys.argv[2]))
