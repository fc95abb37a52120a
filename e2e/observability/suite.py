"""Real Jaeger, Prometheus and promtool: traces that arrive, panels that have data, alerts that ask for what exists.

python3 e2e/run.py observability [--postern PATH] [--operator PATH] [--keep]    # as root

Everything runs in network namespaces of this run's own, before a real API server.
"""

import os
import sys
from functools import partial
from pathlib import Path

# Servers and their certificates are those of the cluster's suite.
sys.path.append(str(Path(__file__).resolve().parents[1] / "cluster"))

import alerting
import jaeger
import panels
import servers
import traces
import written
from runner import OPERATOR, POSTERN, ROOT, Suite, executable, run
from stage import Stage

# Set for the copy of this program that runs in the namespace.
INSIDE = "POSTERN_E2E_OBSERVABILITY"


def stages(options):
    if INSIDE not in os.environ:
        servers.build()
        jaeger.build()
        # No address of this machine is in reach there, and every port is free.
        again = ["unshare", "--net", sys.executable, str(ROOT / "e2e/run.py"), "observability", *sys.argv[1:]]
        os.execvpe("unshare", again, os.environ | {INSIDE: "1"})
    steps = lambda _: [step for module in (traces, panels, alerting, written) for step in module.steps()]
    yield "gateways, operator, Jaeger and Prometheus", partial(Stage, options.postern, options.operator), steps


run(
    Suite(
        "observability",
        __doc__.splitlines()[0],
        stages,
        needs_root=True,
        programs={
            **{"ip": "iproute2", "nsenter": "util-linux", "unshare": "util-linux", "setpriv": "util-linux"},
            **{"openssl": "openssl", "prometheus": "prometheus", "promtool": "prometheus"},
        },
        options={"--postern": executable(POSTERN), "--operator": executable(OPERATOR)},
    )
)
