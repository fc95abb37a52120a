"""Runs real clients through the built gateway, by the proxy and unconfigured in a namespace.

python3 e2e/run.py clients [--way explicit|transparent|both] [--postern PATH] [--only WORD]… [--verbose] [--keep]
"""

from functools import partial

import agents
import behind_run
import command_line
import commanding
import fetching
import first_hour
import gateway
import guarded
import install
import routed
import trust
import unconfigured
from explicit import Explicit
from runner import POSTERN, Suite, demand_root, executable, run
from stage import Stage
from transparent import Transparent

import sdks

# By name, the stages that it takes: a way, and what is run on it.
WAYS = {
    "explicit": [(Explicit, [fetching, trust, command_line, sdks, behind_run, first_hour, commanding, agents, guarded, routed, gateway])],
    "transparent": [
        (Transparent, [fetching, command_line, sdks, agents, guarded, unconfigured, gateway]),
        (partial(Transparent, families=[6]), [fetching, unconfigured, gateway]),
    ],
}


def stages(options):
    tools = install.Tools(options.postern)
    for name in WAYS if options.way == "both" else [options.way]:
        if name == "transparent":
            demand_root()
        for make, modules in WAYS[name]:
            way = make()
            clients = lambda stage, modules=modules: [step for module in modules for step in module.steps(tools, stage)]
            yield str(way), partial(Stage, tools, way), clients


run(Suite("clients", __doc__.splitlines()[0], stages, options={
    "--way": {"choices": [*WAYS, "both"], "default": "explicit", "help": "how they reach it; transparent needs root"},
    "--postern": executable(POSTERN),
}))
