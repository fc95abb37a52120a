"""Makes what a release publishes: static executables, images by digest, the chart, checksums and bills of materials.

python3 scripts/release.py             # all of it, for the architecture of this machine: target/dist
python3 scripts/release.py check       # versions agree, and the changelog has a section for this one
python3 scripts/release.py build       # the part of one architecture: target/dist/parts/ARCH
python3 scripts/release.py assemble    # from the parts that are there: images of every architecture, chart, checksums
python3 scripts/release.py publish     # pushes images and chart, makes the release on GitHub (skopeo, helm, gh)

Executables are compiled where they run: each architecture on a machine of its own (.github/workflows/release.yml).
"""

import gzip
import hashlib
import io
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
CHART = ROOT / "charts" / "postern"
BUILT = ROOT / "target" / "images" / "roots"
DIST = ROOT / "target" / "dist"
REGISTRY = "ghcr.io/postern-dev"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
# By image, the executable in it.
IMAGES = {"gateway": "postern", "operator": "postern-operator"}
INDEX = "application/vnd.oci.image.index.v1+json"


def main():
    steps = {"check": check, "build": build, "assemble": assemble, "publish": publish}
    asked = sys.argv[1:] or ["build", "assemble"]
    unknown = [word for word in asked if word not in steps]
    if unknown:
        sys.exit(f"no such step: {' '.join(unknown)}; there are {', '.join(steps)}")
    check()
    if asked != ["check"]:
        # The same commit makes the same bytes: https://reproducible-builds.org/specs/source-date-epoch/
        os.environ.setdefault("SOURCE_DATE_EPOCH", told("git", "log", "-1", "--format=%ct"))
    for word in asked:
        steps[word]()


def version():
    return tomllib.loads((ROOT / "Cargo.toml").read_text())["package"]["version"]


def check():
    """Fails where the release would contradict itself."""
    chart = dict(line.split(": ", 1) for line in (CHART / "Chart.yaml").read_text().splitlines() if ": " in line)
    wrong = [
        f"charts/postern/Chart.yaml has {key} {chart.get(key)}, and Cargo.toml {version()}"
        for key in ("version", "appVersion")
        if chart.get(key) != version()
    ]
    if section(version()) is None:
        wrong.append(f"CHANGELOG.md has no section `## {version()} – DATE`")
    if wrong:
        sys.exit("\n".join(wrong))


def section(number):
    """The heading and the text of a version in the changelog."""
    found = re.search(rf"^## {re.escape(number)} – (.+?)$\n(.*?)(?=^## |\Z)", (ROOT / "CHANGELOG.md").read_text(), re.M | re.S)
    return found and (found[1], found[2].strip())


def build():
    """Compiles for this machine."""
    architecture = ARCHITECTURES.get(platform.machine())
    if not architecture:
        sys.exit(f"{platform.machine()} is no architecture that releases have: {', '.join(ARCHITECTURES)}")
    part = DIST / "parts" / architecture
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    run(ROOT / "scripts" / "images.sh", "--tag", version())
    for image, executable in IMAGES.items():
        name = f"{executable}-{version()}-linux-{architecture}"
        root = BUILT / image
        shutil.copy(root / "usr/share/sbom" / f"{executable}.spdx.json", part / f"{name}.spdx.json")
        files = [(root / executable, 0o755), (ROOT / "LICENSE", 0o644), (ROOT / "CHANGELOG.md", 0o644)]
        archive(part / f"{name}.tar.gz", [(f"{name}/{file.name}", file.read_bytes(), mode) for file, mode in files])
        stored = f"{REGISTRY}/postern-{image}:{version()}"
        run("buildah", "push", "--quiet", "--format", "oci", stored, f"oci-archive:{part / f'{image}.oci.tar'}:{version()}")
    print(f"{part}: {', '.join(sorted(file.name for file in part.iterdir()))}")


def assemble():
    """Puts the parts together. A release of one architecture alone says so."""
    parts = sorted((DIST / "parts").glob("*"))
    if not parts:
        sys.exit("nothing is built: python3 scripts/release.py build")
    for file in DIST.glob("*"):
        if file.is_file():
            file.unlink()
    digests = {}
    for image in IMAGES:
        target = DIST / f"postern-{image}-{version()}.oci.tar"
        digests[image] = join([part / f"{image}.oci.tar" for part in parts], target)
    lines = [f"{REGISTRY}/postern-{image}:{version()}@{digest}\n" for image, digest in digests.items()]
    (DIST / "images.txt").write_text("".join(lines))
    for part in parts:
        for file in part.iterdir():
            if not file.name.endswith(".oci.tar"):
                shutil.copy(file, DIST)
    packaged = chart(digests)
    run(ROOT / "scripts" / "deploy.sh", DIST / f"postern-{version()}.yaml", packaged)
    (DIST / "NOTES.md").write_text(section(version())[1] + "\n")
    sums = [f"{sha256(file.read_bytes())}  {file.name}\n" for file in sorted(DIST.glob("*")) if file.is_file()]
    (DIST / "SHA256SUMS").write_text("".join(sums))
    print(f"{version()} for {' and '.join(part.name for part in parts)} in {DIST}:")
    print("".join(lines + sums), end="")


def join(archives, target):
    """One image of several architectures, out of archives of one each, and its digest."""
    blobs, manifests = {}, []
    for path in archives:
        with tarfile.open(path) as archived:
            files = {member.name.removeprefix("./"): archived.extractfile(member).read() for member in archived if member.isfile()}
        blobs |= {name: content for name, content in files.items() if name.startswith("blobs/")}
        for manifest in json.loads(files["index.json"])["manifests"]:
            image = json.loads(files[blob(manifest["digest"])])
            config = json.loads(files[blob(image["config"]["digest"])])
            described = {key: manifest[key] for key in ("mediaType", "digest", "size")}
            manifests.append(described | {"platform": {key: config[key] for key in ("architecture", "os", "variant") if key in config}})
    index = json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests}, indent=1).encode()
    digest = f"sha256:{sha256(index)}"
    name = {"org.opencontainers.image.ref.name": version()}
    entry = {"mediaType": INDEX, "digest": digest, "size": len(index), "annotations": name}
    top = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry]}
    blobs[blob(digest)] = index
    files = {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}', "index.json": json.dumps(top).encode()} | blobs
    archive(target, [(name, content, 0o644) for name, content in sorted(files.items())])
    return digest


def blob(digest):
    return "blobs/" + digest.replace(":", "/")


def chart(digests):
    """The chart as an archive, whose images are these, whatever a tag says later."""
    values = (CHART / "values.yaml").read_text()
    for image, digest in digests.items():
        pinned = rf'(repository: {re.escape(f"{REGISTRY}/postern-{image}")}\n(?:.*\n){{1,6}}?\s+digest: )""'
        values, count = re.subn(pinned, rf'\g<1>"{digest}"', values)
        if count != 1:
            sys.exit(f"charts/postern/values.yaml has no digest of {image} to be written")
    files = sorted(file for file in CHART.rglob("*") if file.is_file())
    entries = []
    for file in files:
        content = values.encode() if file == CHART / "values.yaml" else file.read_bytes()
        entries.append((f"postern/{file.relative_to(CHART)}", content, 0o644))
    target = DIST / f"postern-{version()}.tgz"
    archive(target, entries)
    return target


def archive(target, entries):
    """Writes a tar file, compressed where it is called so, that has the same bytes for the same entries."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, content, mode in entries:
            member = tarfile.TarInfo(name)
            member.size, member.mode, member.mtime = len(content), mode, epoch()
            tar.addfile(member, io.BytesIO(content))
    is_compressed = target.suffix in (".gz", ".tgz")
    target.write_bytes(gzip.compress(packed.getvalue(), mtime=epoch()) if is_compressed else packed.getvalue())


def publish():
    """Pushes everything. The version is dated, and this is its commit."""
    date, _ = section(version())
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", date):
        sys.exit(f"CHANGELOG.md has no date for {version()}: {date}")
    tag = f"v{version()}"
    if told("git", "tag", "--points-at", "HEAD", "--list", tag) != tag:
        sys.exit(f"this commit is not tagged {tag}")
    parts = {part.name for part in (DIST / "parts").glob("*")}
    if parts != set(ARCHITECTURES.values()):
        sys.exit(f"a release has {' and '.join(ARCHITECTURES.values())}, and here is {' and '.join(sorted(parts)) or 'none'}")
    for line in (DIST / "images.txt").read_text().split():
        name, _ = line.split("@")
        image = name.rsplit("/", 1)[1].split(":")[0]
        source = f"oci-archive:{DIST / f'{image}-{version()}.oci.tar'}:{version()}"
        run("skopeo", "copy", "--all", "--preserve-digests", source, f"docker://{name}")
    run("helm", "push", DIST / f"postern-{version()}.tgz", f"oci://{REGISTRY}/charts")
    files = sorted(file for file in DIST.iterdir() if file.is_file() and not file.name.endswith(".oci.tar"))
    run("gh", "release", "create", tag, "--verify-tag", "--title", tag, "--notes-file", DIST / "NOTES.md", *files)


def epoch():
    return int(os.environ["SOURCE_DATE_EPOCH"])


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def told(*command):
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def run(*command):
    subprocess.run([str(word) for word in command], cwd=ROOT, check=True)


if __name__ == "__main__":
    main()
