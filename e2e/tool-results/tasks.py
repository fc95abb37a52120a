"""The tasks: a project, the command that an agent runs in it, and the line of the output that it needs, if any."""

from collections.abc import Callable
from dataclasses import dataclass

from projects import (
    FAILING,
    c_files,
    files,
    go_tests,
    history,
    name,
    node_tests,
    packages,
    pytest_tests,
    python_errors,
    service_log,
    table,
    typescript_errors,
)

TRACEBACK = """Traceback (most recent call last):
  File "/srv/shop/ship.py", line 61, in ship
    parcel = parcels[order.parcel]
KeyError: 'parcel-7731'"""


@dataclass(frozen=True)
class Task:
    """`kind` is what the report counts by. `needs` is a text that stands in the needed line alone; what searches for it is
    `search`, or itself. Where `searches`, it is searched for before a whole file is read. `turns` follow."""

    name: str
    kind: str
    write: Callable
    command: str
    needs: str | None = None
    search: str | None = None
    searches: bool = False
    turns: int = 6


# The lines that a model would look for first stand in the middle of their outputs, where cuts are. Claude Code itself
# shortens what a failed command prints to 10,000 characters: where the status is masked, as models often do, it does not.
TASKS = [
    Task("go test, verbose, 450 tests, one fails", "tests", go_tests(450), "go test -v ./...", f"--- FAIL: Test_{name(FAILING)}"),
    Task("go test, its message, status masked", "tests", go_tests(450), "go test -v ./... 2>&1; echo status $?", f"got {FAILING} parcels, want {FAILING + 1}"),
    Task("pytest, verbose, 330 tests, one fails", "tests", pytest_tests(330), "pytest -v --color=no 2>&1; echo status $?", f"assert {FAILING} == {FAILING + 1}"),
    Task("pytest, verbose, 2000 tests, one fails", "tests", pytest_tests(2000), "pytest -v --color=no", f"assert {FAILING} == {FAILING + 1}"),
    Task("pytest, which test fails, of 2000", "tests", pytest_tests(2000), "pytest -v --color=no 2>&1; echo status $?", f"test_{name(FAILING)} FAILED"),
    Task("pytest, verbose, 330 tests pass", "tests that pass", pytest_tests(330, fails=False), "pytest -v --color=no"),
    Task("node --test, 600 tests, one fails", "tests", node_tests(600), "node --test --test-reporter=spec 2>&1; echo status $?", f"✖ {name(FAILING)}"),
    Task("node --test as TAP, one fails", "tests", node_tests(300), "node --test --test-reporter=tap", f"not ok {FAILING + 1} - {name(FAILING)}"),
    Task("make, 110 files, one does not compile", "compiler", c_files(110, broken=55), "make -k clean all 2>&1; echo status $?", "‘missing_parcel’ undeclared"),
    Task("make, 110 files compile", "build that passes", c_files(110), "make clean all"),
    Task("make, one warning of 110", "build that passes", c_files(110), "make clean all", "unused variable ‘unused_57’"),
    Task("tsc, 340 errors, one of them", "compiler", typescript_errors(340), "tsc --noEmit --pretty false shop.ts; echo status $?", "shop.ts(171,"),
    Task("mypy, 280 errors, one of them", "compiler", python_errors(280), "mypy --no-color-output shop.py; echo status $?", "shop.py:701: error", searches=True),
    Task("ruff, 380 errors, one of them", "linter", python_errors(380), "ruff check --isolated --output-format concise .", "shop.py:950:", searches=True),
    Task("find, 600 files, one of them", "listing", files(600), "find . -type f | sort", f"{name(333)}.py", searches=True),
    Task("ls -lR, 420 files", "listing", files(420), "ls -lR"),
    Task("grep, 360 places, one of them", "listing", files(360), "grep -rn TODO src | sort", "TODO(218)", searches=True),
    Task("cat of a table, a row of 700", "data", table(700), "cat table.csv", f"{name(351)},", searches=True),
    Task("cat of a table, its last row", "data", table(700), "cat table.csv", f"{name(699)},"),
    Task("JSON, one line", "data", table(480), "cat table.json", f'"{name(251)}"', searches=True),
    Task("JSON, 2000 lines", "data", table(400), "cat pretty.json", f'"{name(201)}"', searches=True),
    Task("git log, 140 commits, one of them", "history", history(140), "git log", f"Count the parcels of {name(71)}", searches=True),
    Task("git log --stat", "history", history(110), "git log --stat"),
    Task("git log -p, a line", "history", history(60, lines=9), "git log -p", f"{name(29)} line 5", searches=True),
    Task("a service's log, an order", "log", service_log(420), "cat service.log", "declined by the bank", searches=True),
    Task("a service's log with a traceback", "log", service_log(420, TRACEBACK), "cat service.log", "KeyError: 'parcel-7731'"),
    Task("npm install, verbose", "installer", packages(190), "find node_modules package-lock.json -delete; npm install --offline --no-audit --no-fund --loglevel silly 2>&1"),
    Task("a short output", "short", table(20), "cat table.csv", f"{name(10)},"),
]
