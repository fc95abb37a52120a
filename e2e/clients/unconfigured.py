"""Checks that need the namespaces: clients of other protocols, addresses that were not asked for, and QUIC."""

import ipaddress
import re
import subprocess
from functools import partial

from commands import output
from fetching import INTACT, Fetch, version
from room import NAMESERVERS, OUTSIDE
from stage import HERE, MAIL_HOST
from steps import Step
from transparent import SSH_HOST

# Nobody is there, but a route leads there.
ELSEWHERE = {4: "203.0.113.80", 6: "[fd79::80]"}
POOLS = {4: ipaddress.ip_network("198.18.0.0/15"), 6: ipaddress.ip_network("fd00::/8")}


def steps(tools, stage):
    yield Step(f"getent {version('getent', '--version')}", getent)
    curl = version("curl", "--version")
    yield Step(f"curl, by addresses of its own {curl}", dialled)
    yield Step(f"curl pop3 {curl}", pop3)
    http3 = [tools.python, tools.programs / "with_http3.py"]
    yield Step(f"curl_cffi HTTP/3 {tools.python_version('curl_cffi')}", partial(quic, http3))
    yield Step(f"git over ssh {version('ssh', '-V')}", partial(ssh, tools))
    yield Step(f"all of them, seen from outside {version('ip', '-V')}", outside)


def getent(stage, client):
    """The nameserver of its resolv.conf does not exist; the gateway answers in its place."""
    code, printed, errors = stage.output(["getent", "ahosts", "api.example.com"], stage.bare())
    addresses = {line.split()[0] for line in printed.decode().splitlines()}
    # By IPv6 only where there is nothing else.
    pool = POOLS[stage.way.families[0]]
    synthetic = addresses and all(ipaddress.ip_address(address) in pool for address in addresses)
    client.check("an address of the gateway's own", code == 0 and synthetic, (addresses, errors))
    code, printed, errors = stage.output(["getent", "ahosts", "unnamed.example.com"], stage.bare())
    client.check("unnamed host: no address", code == 2 and not printed, (code, printed, errors))


def dialled(stage, client):
    """The address is no authority: the name goes where the gateway finds it, whatever the client dialled."""
    for family in stage.way.families:
        mark, address = stage.mark(), ELSEWHERE[family]
        code, printed, errors = curl(stage, "packages.example.com", address)
        fits = code == 0 and INTACT in printed and re.search("issuer: .*CN=Postern", errors) and len(stage.seen_since(mark)) == 1
        client.check(f"IPv{family}: inspected, issuer is Postern", fits, f"{code} {printed}{errors}")
        code, printed, errors = curl(stage, "unnamed.example.com", address)
        reset = code == 35 and "reset" in errors and len(stage.seen_since(mark)) == 1
        client.check(f"IPv{family}: unnamed host is reset", reset, f"{code} {printed}{errors}")
    code, printed, errors = letter(stage, f"[{OUTSIDE[6]}]")
    client.check("IPv6 address of a CIDR rule: passed through", code == 0 and INTACT in printed, f"{code} {printed}{errors}")
    if 4 in stage.way.families:
        code, printed, errors = letter(stage, OUTSIDE[4])
        client.check("IPv4 address of no rule: reset", "reset by peer" in errors and "+OK" not in errors, f"{code} {printed}{errors}")


def curl(stage, host, address):
    return said(stage, ["--verbose", "--resolve", f"{host}:443:{address}", f"https://{host}/public/data"])


def pop3(stage, client):
    """The server speaks first, and its bytes name nobody: the address that was answered for the name does."""
    code, printed, errors = letter(stage, MAIL_HOST)
    client.check("letter intact", code == 0 and INTACT in printed, f"{code} {printed}{errors}")
    code, printed, errors = letter(stage, "packages.example.com")
    client.check("port of no rule: reset", "reset by peer" in errors and "+OK" not in errors, f"{code} {printed}{errors}")


def letter(stage, host):
    return said(stage, ["--verbose", "--user", "agent:any", f"pop3://{host}/1"])


def said(stage, options):
    code, printed, errors = stage.output(["curl", "--silent", "--show-error", "--max-time", "20", *options], stage.environment())
    return code, printed.decode(), errors


def quic(command, stage, client):
    """Refused and not dropped, so that a client which would also take HTTP/2 does at once."""
    seen = Fetch(stage, [*command, "v3only"])("https://packages.example.com/public/data")
    took = re.search(r"\((\d+\.\d+) s\)", seen.error)
    # What is dropped would end after the client's own patience, with other words.
    refused = took and "timed out" not in seen.error.lower()
    client.check("HTTP/3 alone: refused, not dropped", refused and not seen.upstream, seen)
    client.notes.append(f"HTTP/3 is refused in {took[1] if took else '?'} s")
    seen = Fetch(stage, [*command, "v3"])("https://packages.example.com/public/data")
    versions = [request["http"] for request in seen.upstream]
    client.check("else HTTP/2", seen.status == 200 and INTACT in seen.text and versions == ["2.0"], seen)


def ssh(tools, stage, client):
    """Passed through whole: the server's own key is what the client accepts."""
    keys = {name: stage.directory / f"{name}-key" for name in ("server", "client", "other")}
    for key in keys.values():
        stage.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
    serve = [tools.python, HERE / "ssh_server.py", 22, keys["server"], f"{keys['client']}.pub", stage.directory / "repositories"]
    server = stage.start(stage.way.upstream(serve), env=stage.bare(), stdout=subprocess.PIPE, text=True)
    client.check("the server listens", server.stdout.readline().strip() == "22", server.poll())
    copy = stage.directory / "over-ssh"
    code, errors = clone(stage, keys["client"], keys["server"], copy)
    same = code == 0 and (copy / "large").read_bytes() == (stage.directory / "work/large").read_bytes()
    client.check("cloned intact", same, errors)
    code, errors = clone(stage, keys["client"], keys["other"], stage.directory / "not-cloned")
    client.check("the key it sees is the server's", code and "Host key verification failed" in errors, errors)


def clone(stage, key, host_key, copy):
    """Clones by the one key, from a server that is known by the other."""
    known = stage.directory / f"{copy.name}-known-hosts"
    known.write_text(f"{SSH_HOST} {host_key.with_suffix('.pub').read_text()}")
    trust = f"-o UserKnownHostsFile={known} -o GlobalKnownHostsFile=/dev/null -o StrictHostKeyChecking=yes"
    environment = stage.environment(GIT_SSH_COMMAND=f"ssh -F /dev/null -i {key} -o IdentitiesOnly=yes -o BatchMode=yes {trust}")
    code, _, errors = stage.output(["git", "clone", f"ssh://git@{SSH_HOST}/team/tools.git", copy], environment)
    return code, errors


def outside(stage, client):
    """Nothing of all the clients before got past the gateway, QUIC and DNS included; the counters must be able to show it."""
    way = stage.way
    strays = way.room.strays()
    client.check("nothing came out past the gateway", not strays, strays)
    server = NAMESERVERS[way.families[0]]
    output(way.gateway(["bash", "-c", f"echo > /dev/udp/{server}/9"]))
    seen = way.room.strays()
    client.check("a datagram of the gateway's user is seen", sum(seen.values()) == sum(strays.values()) + 1, seen)
