"""Installs Postern on a real Kubernetes of one node, and says for each promise what was expected and what was seen.

python3 e2e/run.py cluster [--only WORD]… [--keep]    # --keep leaves the cluster: `e2e/run.py cluster/cluster down` removes it
"""

from functools import partial

import attacks
import changes
import choices
import failures
import install
import kept_results
import removal
import traffic
from runner import Suite, run
from stage import Stage

MODULES = [install, traffic, changes, choices, attacks, failures, kept_results, removal]
PROGRAMS = {
    "ip": "iproute2",
    "nft": "nftables",
    "iptables": "iptables",
    "conntrack": "conntrack",
    "nsenter": "util-linux",
    "openssl": "openssl",
    "cc": "gcc",
    "strip": "binutils",
    "containerd": "containerd",
    "runc": "runc",
    "/usr/lib/cni/bridge": "containernetworking-plugins",
    "mmdebstrap": "mmdebstrap",
    "buildah": "buildah",
    "go": "Go 1.26 or later",
}


def stages(options):
    yield "Kubernetes of one node", partial(Stage, options.keep), lambda _: [step for module in MODULES for step in module.steps()]


def closing(_options, runs):
    return ["", *(line for run in runs for line in run.stage.times.lines()), ""]


run(Suite("cluster", __doc__.splitlines()[0], stages, needs_root=True, programs=PROGRAMS, closing=closing))
