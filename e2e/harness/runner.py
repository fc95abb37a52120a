"""How every suite runs: its options, the programs that it needs, its stages with their steps, and the summary line."""

import argparse
import http.client
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
POSTERN, OPERATOR = ROOT / "target/debug/postern", ROOT / "target/debug/postern-operator"
# What a step may meet beside a check that fails.
FAILURES = (*(OSError, RuntimeError, ValueError, LookupError, TypeError, AttributeError), *(http.client.HTTPException, subprocess.SubprocessError))


@dataclass(frozen=True)
class Suite:
    """`stages`, called with the options, yields for each stage its title, what makes it in a directory, and what makes its
    steps; `programs` maps the programs that are needed to the packages that have them."""

    name: str
    description: str
    stages: Callable
    programs: dict = field(default_factory=dict)
    # Further options, with the keywords of `add_argument`.
    options: dict = field(default_factory=dict)
    needs_root: bool = False
    # Whether --only chooses steps; otherwise the suite itself reads it.
    chooses_steps: bool = True
    # Called with the stage after a step broke off.
    restore: Callable = lambda stage: None
    # Called with the options and the runs; yields the lines before the summary.
    closing: Callable = lambda options, runs: ()


@dataclass(frozen=True)
class Run:
    """A stage and the steps that ran on it."""

    title: str
    stage: object
    steps: list


def run(suite):
    """Runs a suite and exits: 0 if every check holds, 1 otherwise. The last line counts the checks."""
    options = parse(suite)
    demand_needed(suite)
    # Ended from outside, it still removes what it made.
    for ending in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ending, lambda number, _: sys.exit(f"ended by {signal.Signals(number).name}"))
    started, runs = time.monotonic(), []
    try:
        for title, make, steps in suite.stages(options):
            print(f"--- {title}", flush=True)
            with scratch(suite.name, options.keep) as directory, make(directory) as stage:
                runs.append(Run(title, stage, list(examined(suite, stage, chosen(suite, steps(stage), options), options))))
    except (OSError, RuntimeError) as error:
        sys.exit(f"FAIL  the stage cannot be set: {error}\n0 passed, 1 failed")
    for line in suite.closing(options, runs):
        print(line)
    checks = [holds for each in runs for step in each.steps for holds in step.checks]
    print(f"{checks.count(True)} passed, {checks.count(False)} failed in {time.monotonic() - started:.0f} s")
    sys.exit(0 if checks and all(checks) else 1)


def parse(suite):
    parser = argparse.ArgumentParser(prog=f"e2e/run.py {suite.name}", description=suite.description)
    chosen = "the steps alone whose name has this word, and those that they need" if suite.chooses_steps else "the cases whose name has this word"
    parser.add_argument("--only", action="append", default=[], metavar="WORD", help=chosen)
    parser.add_argument("--verbose", action="store_true", help="print every check, not the failed ones alone")
    parser.add_argument("--keep", action="store_true", help="keep the logs and whatever was written")
    for name, keywords in suite.options.items():
        parser.add_argument(name, **keywords)
    return parser.parse_args()


def executable(path):
    """The keywords of an option that names a built executable."""
    return {"type": built, "default": str(path), "metavar": "PATH"}


def built(path):
    if not Path(path).exists():
        raise argparse.ArgumentTypeError(f"{path} does not exist: run `cargo build --all-features` first")
    return Path(path).resolve()


def demand_root():
    if os.geteuid():
        sys.exit("network namespaces and containers are made by root alone: run this suite as root")


def demand_needed(suite):
    if suite.needs_root:
        demand_root()
    missing = {package for program, package in suite.programs.items() if not shutil.which(program)}
    if missing:
        sys.exit(f"programs are missing: install {', '.join(sorted(missing))}")


def chosen(suite, steps, options):
    words = [word.lower() for word in options.only] if suite.chooses_steps else []
    return [step for step in steps if step.needed or not words or any(word in step.name.lower() for word in words)]


def examined(suite, stage, steps, options):
    """Examines one step after the other, to the end or to a needed one that fails: all further ones stand on it."""
    for step in steps:
        yield examine(suite, stage, step, options)
        if step.needed and not all(step.checks):
            print("      no further step is examined: they need this one", flush=True)
            return


def examine(suite, stage, step, options):
    step.begin(options.verbose)
    try:
        step.examine(stage, step)
    except FAILURES as error:
        step.check("the checks come to their end", False, repr(error))
        suite.restore(stage)
    print(*step.summary(), sep="\n", flush=True)
    return step


@contextmanager
def scratch(name, is_kept):
    """A directory of this run, which ordinary users may enter: the repository may stand in root's home."""
    directory = Path(tempfile.mkdtemp(prefix=f"postern-{name}-"))
    directory.chmod(0o755)
    try:
        yield directory
    finally:
        if is_kept:
            print(f"the logs are in {directory}")
        else:
            shutil.rmtree(directory)
