"""Network namespaces: commands and sockets in them, and addresses on their devices."""

import ctypes
from contextlib import contextmanager

from commands import run

CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)


def within(name, *command):
    """A command in a namespace. `ip netns exec` would hide cgroups."""
    return ["nsenter", f"--net=/run/netns/{name}", *map(str, command)]


@contextmanager
def inside(name):
    """This thread in a namespace: sockets made there stay there, and /proc/sys is that namespace's."""
    with open("/proc/thread-self/ns/net", "rb") as before, open(f"/run/netns/{name}", "rb") as there:
        enter(there)
        try:
            yield
        finally:
            enter(before)


def enter(namespace):
    if LIBC.setns(namespace.fileno(), CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), f"{namespace.name} cannot be entered")


def ip(name, *lines):
    """Runs lines of iproute2 in a namespace."""
    run("ip", "-n", name, "-batch", "-", input="\n".join(lines))


def address(name, *addresses, device="eth0"):
    """Gives a device addresses; one of IPv6 is not looked for first."""
    ip(name, *(f"address add {each}{'/64' if ':' in each else '/24'} dev {device}{' nodad' if ':' in each else ''}" for each in addresses))
