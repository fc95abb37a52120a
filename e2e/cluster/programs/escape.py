"""An agent's attacks on the redirect and the gateway from its container: UID of the gateway."""

import ctypes
import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

GATEWAY = int(sys.argv[1])
LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET = 0x00020000, 0x10000000, 0x40000000
COMMANDS = {
    "iptables": ["iptables", "-t", "nat", "-F"],
    "ip6tables": ["ip6tables", "-t", "nat", "-F"],
    "nft flush": ["nft", "flush", "ruleset"],
    "nft delete": ["nft", "delete", "table", "inet", "postern"],
    "nft list": ["nft", "list", "ruleset"],
    "ip link": ["ip", "link", "add", "escape0", "type", "dummy"],
}
SOCKETS = {
    "packet socket": (socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)),
    "raw socket": (socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP),
    "raw socket over IPv6": (socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_TCP),
}


def outcome(attempt):
    """`None` where it succeeded, else what was said."""
    try:
        return attempt()
    except OSError as error:
        return os.strerror(error.errno)


def command(words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else (done.stderr.strip().splitlines() or ["no word"])[0]


def in_child(attempt):
    """The outcome of what would change this process."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        answer = outcome(attempt)
        os.write(writing, json.dumps(answer).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return json.loads(answer or '"no word"')


def unshare(flags):
    if LIBC.unshare(flags):
        raise OSError(ctypes.get_errno(), "unshare")


def setuid_program():
    """A file owned by the gateway's user with the setuid bit, which an agent that is root can make."""
    path = "/tmp/as-gateway"
    shutil.copy(shutil.which("id"), path)
    os.chown(path, GATEWAY, GATEWAY)
    os.chmod(path, 0o4755)
    seen = subprocess.run([path, "-u"], capture_output=True, text=True, check=False).stdout.strip()
    return None if seen == str(GATEWAY) else f"runs as {seen}"


def gateways_processes():
    """None would be a foreign process in sight."""
    words = [(each / "cmdline").read_bytes() for each in Path("/proc").glob("[0-9]*") if (each / "cmdline").exists()]
    return None if any(b"postern" in each for each in words) else "not in sight"


def files(*paths):
    matches = [path for path in paths if Path(path).exists()]
    return ", ".join(matches) if matches else "none"


shown = {name: command(words) for name, words in COMMANDS.items()}
shown |= {name: outcome(lambda made=made: socket.socket(*made).close()) for name, made in SOCKETS.items()}
shown["setuid"] = in_child(lambda: os.setuid(GATEWAY))
shown["setresuid"] = in_child(lambda: os.setresuid(GATEWAY, GATEWAY, GATEWAY))
shown["setgid"] = in_child(lambda: os.setgid(GATEWAY))
shown["setuid program"] = outcome(setuid_program)
shown["user namespace"] = in_child(lambda: unshare(CLONE_NEWUSER | CLONE_NEWNET))
shown["mount namespace"] = in_child(lambda: unshare(CLONE_NEWNS))
shown["gateway's processes"] = gateways_processes()
secret = ["/etc/postern", "/run/postern", "/run/secrets/kubernetes.io", "/var/run/secrets/kubernetes.io"]
print(json.dumps({"attempts": shown, "files": files(*secret), "user": os.getuid()}))
