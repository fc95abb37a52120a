"""Links the package's executables statically to the very crates that its tests are made of.

    python3 scripts/relink.py EXECUTABLE OUTPUT

`cargo rustc --bin` would compile a second set of crates, without what the tests' own dependencies add to their features.
"""

import json
import subprocess
import sys
from pathlib import Path


def main():
    executable, output = sys.argv[1:]
    package, names = told()
    built = artifacts()
    (source,) = (target["src_path"] for target in package["targets"] if target["name"] == executable and "bin" in target["kind"])
    # What is there twice is there once for a procedural macro: no executable names it itself.
    linked = {name: built[identity][0] for identity, name in names.items() if len(built.get(identity, [])) == 1}
    externs = [word for name, file in linked.items() for word in ("--extern", f"{name}={file}")]
    # Cargo lays what was asked for beside the directory in which everything is.
    beside = Path(linked[package["name"]]).parent
    crates = ["-L", f"dependency={beside}", "-L", f"dependency={beside / 'deps'}", *externs]
    shape = ["--edition", package["edition"], "--crate-name", executable.replace("-", "_"), "--crate-type", "bin"]
    static = ["-C", "target-feature=+crt-static", "-C", "strip=symbols", "--cap-lints", "allow"]
    subprocess.run(["rustc", *shape, *static, *crates, "-o", output, source], check=True)


def told():
    """The package, and by the id of each crate that it depends on the name that its sources know it by."""
    command = ["cargo", "metadata", "--locked", "--all-features", "--format-version", "1"]
    metadata = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    root = metadata["resolve"]["root"]
    (package,) = (each for each in metadata["packages"] if each["id"] == root)
    (node,) = (each for each in metadata["resolve"]["nodes"] if each["id"] == root)
    return package, {each["pkg"]: each["name"] for each in node["deps"]} | {root: package["name"]}


def artifacts():
    """By package, the libraries of the build that the recipes share."""
    command = ["cargo", "build", "--locked", "--all-features", "--bins", "--tests"]
    done = subprocess.run([*command, "--message-format", "json-render-diagnostics"], check=True, stdout=subprocess.PIPE)
    found = {}
    for message in map(json.loads, done.stdout.splitlines()):
        if message["reason"] == "compiler-artifact" and "lib" in message["target"]["kind"] and not message["profile"]["test"]:
            found.setdefault(message["package_id"], []).extend(file for file in message["filenames"] if file.endswith(".rlib"))
    return found


main()
