"""The benign twins: traffic that must pass while an attack is refused."""

from agent import OTHER, USER
from outside import INTACT

POSTERN = "Postern"


def inspected(stage, subject):
    """An allowed host, unconfigured but for the CA: the issuer that is presented says who ended TLS."""
    seen = stage.agents.run(USER, "twins/https", "api.example.com")
    holds = seen["issuer"].startswith(POSTERN) and INTACT in seen["answer"]
    subject.check("twin: https to an allowed host, issuer is Postern", holds, seen)


def inspected_after_quic(stage, subject):
    """The client that was refused QUIC has its answer over TCP; how soon is told."""
    seen = stage.agents.run(USER, "twins/https", "api.example.com")
    subject.check("twin: falls back to TCP", seen["issuer"].startswith(POSTERN), seen)
    subject.notes.append(f"falls back to TCP in {seen['seconds']:.2f} s")


def between_containers(stage, subject):
    """Two users of one pod over both loopbacks."""
    with stage.agents.start(USER, "twins/loopback", "serve") as server:
        seen = stage.agents.run(OTHER, "twins/loopback", "dial", server.said)
        server.end()
    subject.check("twin: loopback between two containers", set(seen.values()) == {"between containers"}, seen)
