"""Returns the result of an attempt, or the name of its error."""

import errno
import os
import socket

FAMILIES = {"4": socket.AF_INET, "6": socket.AF_INET6}
DEVICE = b"eth0\0"
# Seconds for an answer. Where it is the frame outside that counts, nobody waits for one.
PATIENCE = float(os.environ["PATIENCE"])


def tried(act, *arguments):
    try:
        given = act(*arguments)
        return "done" if given is None else str(given)
    except TimeoutError:
        return "TIMEOUT"
    except OSError as error:
        # An error of TLS has a reason, and a number that is none of the kernel's.
        return repr(error) if hasattr(error, "reason") else errno.errorcode.get(error.errno, repr(error))


def destination(family, address, port):
    """A socket address; `%device` in it is understood."""
    return socket.getaddrinfo(address, port, FAMILIES[family], flags=socket.AI_NUMERICHOST)[0][4]
