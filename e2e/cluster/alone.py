"""Runs what is proven on an API server without a node: definitions, rendering, backstops, lifecycle, two operators.

python3 e2e/run.py cluster/alone [--only WORD]… [--verbose]    # KVER chooses the version of Kubernetes
"""

import backstops
import crds
import lifecycle
import rendering
import replicas
import servers
from api_server import ApiServer
from runner import OPERATOR, Suite, executable, run

MODULES = [crds, rendering, backstops, lifecycle, replicas]


def stages(options):
    replicas.EXECUTABLE = options.operator
    yield f"Kubernetes {servers.VERSION}, an API server alone", ApiServer, lambda _: [step for module in MODULES for step in module.steps()]


run(Suite("alone", __doc__.splitlines()[0], stages, options={"--operator": executable(OPERATOR)}))
