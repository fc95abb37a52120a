"""Real Jaeger, Prometheus and promtool: traces that arrive, panels that have data, alerts that ask for what exists.

python3 e2e/observability/run.py [--postern PATH] [--operator PATH] [--keep]    # as root

Everything runs in network namespaces of this run's own, before a real API server; exit status 1 where a check fails.
"""

import argparse
import http.client
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Servers, certificates and steps are those of the cluster's e2e.
sys.path.append(str(ROOT / "e2e/cluster"))

import alerting
import jaeger
import panels
import servers
import traces
import written
from stage import Stage

NEEDED = ["ip", "nsenter", "unshare", "setpriv", "openssl", "prometheus", "promtool"]
# What a step may meet that is no check of its own.
FAILURES = (OSError, RuntimeError, ValueError, LookupError, TypeError, http.client.HTTPException, subprocess.SubprocessError)
# Said to the copy of this program that runs in the namespace.
INSIDE = "POSTERN_E2E_OBSERVABILITY"


def main():
    arguments = parse()
    refuse_what_cannot_work(arguments)
    if INSIDE not in os.environ:
        servers.build()
        jaeger.build()
        # No address of this machine is in reach there, and every port is free.
        os.execvpe("unshare", ["unshare", "--net", sys.executable, *sys.argv], os.environ | {INSIDE: "1"})
    # Ended from outside, it still ends what it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))
    started, directory = time.monotonic(), Path(tempfile.mkdtemp(prefix="postern-observability-"))
    done = []
    try:
        with Stage(directory, arguments.postern, arguments.operator) as stage:
            print(f"everything runs after {time.monotonic() - started:.0f} s", flush=True)
            done = [examine(stage, step) for module in (traces, panels, alerting, written) for step in module.steps()]
    except (OSError, RuntimeError) as error:
        sys.exit(f"FAIL  the stage cannot be set: {error}\n0 passed, 1 failed")
    finally:
        if arguments.keep:
            print(f"what was logged is in {directory}")
        else:
            shutil.rmtree(directory)
    checks = [holds for step in done for holds in step.checks]
    print(f"\n{sum(checks)} passed, {len(checks) - sum(checks)} failed in {time.monotonic() - started:.0f} s")
    sys.exit(0 if checks and all(checks) else 1)


def examine(stage, step):
    step.begin()
    try:
        step.examine(stage, step)
    except FAILURES as error:
        step.check("the checks come to their end", False, repr(error))
    step.end()
    return step


def refuse_what_cannot_work(arguments):
    if os.geteuid():
        sys.exit("network namespaces are made by root alone: run this suite as root")
    missing = [program for program in NEEDED if not shutil.which(program)]
    if missing:
        sys.exit(f"{', '.join(missing)} cannot be found: install iproute2, util-linux, openssl and prometheus")
    for built in (arguments.postern, arguments.operator):
        if not built.exists():
            sys.exit(f"{built} is not there: run `cargo build --all-features` first")


def parse():
    parser = argparse.ArgumentParser(description="Traces, dashboards and alerts before the real programs.")
    parser.add_argument("--postern", type=Path, default=ROOT / "target/debug/postern")
    parser.add_argument("--operator", type=Path, default=ROOT / "target/debug/postern-operator")
    parser.add_argument("--keep", action="store_true", help="keep the logs and whatever was written")
    return parser.parse_args()


if __name__ == "__main__":
    main()
