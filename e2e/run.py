"""Runs a suite, or another program below this directory.

python3 e2e/run.py clients --help; python3 e2e/run.py cluster/servers
"""

import runpy
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    directory, _, program = sys.argv[1].partition("/")
    sys.argv[:2] = [f"{sys.argv[0]} {sys.argv[1]}"]
    # Modules are imported by their bare names: those of the suite, then those that all suites share.
    sys.path[:1] = [str(HERE / directory), str(HERE / "harness")]
    runpy.run_path(str(HERE / directory / f"{program or 'suite'}.py"), run_name="__main__")


main()
