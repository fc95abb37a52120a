"""Writes the bill of materials of an executable (SPDX 2.3, JSON): every crate that is linked into it.

    python3 scripts/sbom.py BINARY [--features operator] [--target TRIPLE] > BINARY.spdx.json
"""

import argparse
import datetime
import hashlib
import json
import os
import subprocess
import sys
import tomllib

REGISTRY = "registry+https://github.com/rust-lang/crates.io-index"
REPOSITORY = "https://github.com/postern-dev/postern"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("--features", default="")
    parser.add_argument("--target", default=host())
    arguments = parser.parse_args()
    metadata = resolved(arguments.features, arguments.target)
    json.dump(document(arguments.binary, metadata), sys.stdout, indent=2, sort_keys=True)
    print()


def host():
    lines = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout.splitlines()
    return next(line.removeprefix("host: ") for line in lines if line.startswith("host: "))


def resolved(features, target):
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", target]
    command += ["--features", features] if features else []
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def linked(metadata):
    """The ids of the package itself and of what it links, with what each depends on. Build scripts, procedural macros
    and what they alone need run while it is compiled, and are not in it."""
    macros = {
        package["id"] for package in metadata["packages"] if any("proc-macro" in target["kind"] for target in package["targets"])
    }
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    root = metadata["resolve"]["root"]
    edges, left = {}, [root]
    while left:
        one = left.pop()
        if one in edges:
            continue
        needed = [
            each["pkg"]
            for each in nodes[one]["deps"]
            if any(kind["kind"] is None for kind in each["dep_kinds"]) and each["pkg"] not in macros
        ]
        edges[one] = sorted(set(needed))
        left += needed
    return root, edges


def document(binary, metadata):
    root, edges = linked(metadata)
    packages = {package["id"]: package for package in metadata["packages"]}
    with open("Cargo.lock", "rb") as lock:
        sums = {(each["name"], each["version"]): each.get("checksum") for each in tomllib.load(lock)["package"]}
    crates = sorted(edges, key=lambda each: (packages[each]["name"], packages[each]["version"]))
    entries = [entry(packages[each], sums) for each in crates]
    relationships = [
        {"spdxElementId": reference(packages[one]), "relationshipType": "DEPENDS_ON", "relatedSpdxElement": reference(packages[other])}
        for one in crates
        for other in edges[one]
    ]
    describes = {"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": reference(packages[root])}
    digest = hashlib.sha256(json.dumps([entries, relationships], sort_keys=True).encode()).hexdigest()
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": binary,
        "documentNamespace": f"{REPOSITORY}/sbom/{binary}-{packages[root]['version']}-{digest[:16]}",
        "creationInfo": {"created": created(), "creators": ["Tool: scripts/sbom.py"]},
        "packages": entries,
        "relationships": [describes, *relationships],
    }


def entry(package, sums):
    name, version = package["name"], package["version"]
    known = {
        "SPDXID": reference(package),
        "name": name,
        "versionInfo": version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "NOASSERTION",
        # Some crates still write a slash for OR.
        "licenseDeclared": " OR ".join(part.strip() for part in (package["license"] or "NOASSERTION").split("/")),
        "copyrightText": "NOASSERTION",
        "externalRefs": [
            {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": f"pkg:cargo/{name}@{version}"}
        ],
    }
    if package["source"] == REGISTRY:
        known["downloadLocation"] = f"https://static.crates.io/crates/{name}/{name}-{version}.crate"
    if sums.get((name, version)):
        known["checksums"] = [{"algorithm": "SHA256", "checksumValue": sums[name, version]}]
    return known


def reference(package):
    """Letters, digits, dots and hyphens, as SPDX has them."""
    text = f"{package['name']}-{package['version']}"
    return "SPDXRef-" + "".join(each if each.isascii() and (each.isalnum() or each in ".-") else "-" for each in text)


def created():
    """Now, or when SOURCE_DATE_EPOCH says, so that a build can be repeated to the byte."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    when = datetime.datetime.fromtimestamp(int(epoch), datetime.UTC) if epoch else datetime.datetime.now(datetime.UTC)
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")


if __name__ == "__main__":
    main()
