"""Small projects whose tools print much: each function writes one into a directory."""

import json
import random

from commands import run

# The one that fails, of so many.
FAILING = 217
WORDS = ["cart", "order", "price", "stock", "parcel", "refund", "coupon", "invoice", "ledger", "basket"]


def name(number):
    """A name for the thing with this number; equal numbers have equal names."""
    return f"{WORDS[number % len(WORDS)]}_{number:04}"


def go_tests(count):
    """A Go package with so many tests, one of which fails."""

    def write(directory):
        tests = "\n".join(
            f"func Test_{name(number)}(t *testing.T) {{ check(t, {number}, {number + (number == FAILING)}) }}" for number in range(count)
        )
        check = "func check(t *testing.T, got, want int) {\n\tif got != want {\n\t\tt.Errorf(\"got %d parcels, want %d\", got, want)\n\t}\n}\n"
        (directory / "go.mod").write_text("module example.com/shop\n\ngo 1.20\n")
        (directory / "shop_test.go").write_text(f'package shop\n\nimport "testing"\n\n{check}\n{tests}\n')

    return write


def pytest_tests(count, fails=True):
    """A module of pytest with so many tests, one of which fails where it shall."""

    def write(directory):
        tests = "\n\n".join(
            f"def test_{name(number)}():\n    assert parcels({number}) == {number + (fails and number == FAILING)}" for number in range(count)
        )
        (directory / "test_shop.py").write_text(f"def parcels(count):\n    return count\n\n\n{tests}\n")

    return write


def node_tests(count):
    """A file for `node --test` with so many tests, one of which fails."""

    def write(directory):
        tests = "\n".join(f"test('{name(number)}', () => assert.equal({number}, {number + (number == FAILING)}, 'parcels'));" for number in range(count))
        (directory / "shop.test.mjs").write_text(f"import assert from 'node:assert';\nimport test from 'node:test';\n\n{tests}\n")

    return write


def c_files(count, broken=None):
    """So many files of C behind a Makefile, each with a warning; the broken one does not compile."""

    def write(directory):
        for number in range(count):
            result = "missing_parcel" if number == broken else "0"
            (directory / f"{name(number)}.c").write_text(f"int {name(number)}(int ordered)\n{{\n    int unused_{number} = ordered;\n    return {result};\n}}\n")
        objects = " ".join(f"{name(number)}.o" for number in range(count))
        rule = "%.o: %.c\n\tcc -Wall -Wextra -O2 -g -fno-strict-aliasing -c $< -o $@\n"
        (directory / "Makefile").write_text(f"all: {objects}\n\n{rule}\nclean:\n\trm -f *.o\n")

    return write


def typescript_errors(count):
    """A file of TypeScript with so many errors."""

    def write(directory):
        lines = (f"export const {name(number)}: number = '{name(number)}';" for number in range(count))
        (directory / "shop.ts").write_text("\n".join(lines) + "\n")

    return write


def python_errors(count):
    """A module of Python with so many errors of types and of style."""

    def write(directory):
        functions = (f"def {name(number)}(parcels: int) -> int:\n    unused = {number}\n    return '{name(number)}'\n" for number in range(count))
        (directory / "shop.py").write_text("import os\n\n\n" + "\n\n".join(functions))

    return write


def files(count):
    """A tree of so many files, each with a word to search for."""

    def write(directory):
        for number in range(count):
            place = directory / "src" / WORDS[number % 7] / f"part{number % 11}"
            place.mkdir(parents=True, exist_ok=True)
            (place / f"{name(number)}.py").write_text(f"# TODO({number}): count the parcels of {name(number)}\n")

    return write


def history(count, lines=1):
    """A repository of so many commits; each changes so many lines of a file of its own."""

    def write(directory):
        stream = []
        for number in range(count):
            text = "".join(f"{name(number)} line {line}\n" for line in range(lines))
            message = f"Count the parcels of {name(number)}"
            stream.append(
                f"commit refs/heads/main\nauthor e2e <e2e@example.com> {1700000000 + number} +0000\n"
                f"committer e2e <e2e@example.com> {1700000000 + number} +0000\ndata {len(message)}\n{message}\n"
                f"M 100644 inline {name(number)}.txt\ndata {len(text)}\n{text}\n"
            )
        run("git", "init", "-q", "-b", "main", directory)
        run("git", "-C", directory, "fast-import", "--quiet", input="".join(stream))
        run("git", "-C", directory, "checkout", "-q", "main")

    return write


def table(count):
    """A table of so many rows, as CSV and as JSON."""

    def write(directory):
        rows = [{"id": number, "name": name(number), "parcels": number * 7 % 1000} for number in range(count)]
        (directory / "table.csv").write_text("".join(f"{row['id']},{row['name']},{row['parcels']},shipped\n" for row in rows))
        (directory / "table.json").write_text(json.dumps(rows))
        (directory / "pretty.json").write_text(json.dumps(rows, indent=1))

    return write


def service_log(count, ends_with=""):
    """The log of a service, one line of which is about the order that somebody asks for."""

    def write(directory):
        draw = random.Random(7)
        lines = []
        for number in range(count):
            level = "WARN" if draw.random() < 0.05 else "INFO"
            lines.append(f"2026-11-02T10:{number // 60 % 60:02}:{number % 60:02}Z {level} order={name(number)} took {draw.randrange(900)} ms")
        lines[FAILING] = f"2026-11-02T10:03:37Z INFO order={name(FAILING)} payment declined by the bank"
        if ends_with:
            lines[FAILING + 1 : FAILING + 1] = ends_with.splitlines()
        (directory / "service.log").write_text("\n".join(lines) + "\n")

    return write


def packages(count):
    """A package of npm that depends on so many others beside it."""

    def write(directory):
        for number in range(count):
            place = directory / "packages" / name(number)
            place.mkdir(parents=True)
            (place / "package.json").write_text(json.dumps({"name": name(number).replace("_", "-"), "version": f"1.0.{number}"}))
        names = {name(number).replace("_", "-"): f"file:packages/{name(number)}" for number in range(count)}
        (directory / "package.json").write_text(json.dumps({"name": "shop", "version": "1.0.0", "dependencies": names}))

    return write
