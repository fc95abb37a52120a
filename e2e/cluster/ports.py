"""Ports that are free and stay so until the server for which they were chosen listens."""

import socket

LOOPBACK = "127.0.0.1"


def reserved():
    """A port that the kernel gives to nobody else for a minute: a connection of its has just ended there (RFC 9293
    section 3.6.1, TIME-WAIT). Servers that ask for SO_REUSEADDR, as those of Go and Rust do, have it all the same."""
    with socket.create_server((LOOPBACK, 0)) as listener, socket.create_connection(listener.getsockname()) as dialling:
        accepted, _ = listener.accept()
        # The side that ends first is the one that waits.
        accepted.close()
        dialling.recv(1)
        return listener.getsockname()[1]
