#!/usr/bin/env python3
"""How often the detectors are wrong: findings a MB over code that people publish, beside gitleaks and detect-secrets.

The corpora are the sources of this build's crates, and packages of PyPI and npm that are used a lot; none of them is a scanner.
What is found there are keys of tests at the most, so that each finding is counted as a wrong one.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "target/dlp-corpus"
GITLEAKS = "github.com/zricethezav/gitleaks/v8@v8.30.1"
PYPI = """aiohttp alembic ansible-core attrs black boto3 botocore celery certifi click cryptography django dnspython fastapi flask
    google-auth gunicorn httpx hypothesis ipython jinja2 jsonschema kombu langchain-core litellm mypy networkx nltk notebook numpy
    openai paramiko pillow pip pydantic pygments pytest pyyaml requests rich scapy scrapy setuptools sphinx sqlalchemy sympy tornado
    twisted urllib3 werkzeug""".split()
NPM = """@anthropic-ai/sdk @aws-sdk/client-s3 @babel/core @google/genai @octokit/rest @prisma/client @sentry/node ajv apollo-server
    axios body-parser chalk commander core-js d3 date-fns electron-builder eslint express fastify firebase googleapis graphql
    jsonwebtoken knex lodash mocha moment mongoose next nodemailer oidc-provider openai passport pg playwright-core postcss prettier
    puppeteer-core react-dom redis request rollup rxjs socket.io stripe terser three typescript webpack""".split()


def run(*command, **options):
    return subprocess.run(list(map(str, command)), check=True, **options)


def crates(place):
    """The sources that cargo has already fetched."""
    run("cargo", "vendor", "--locked", "--quiet", place, cwd=ROOT, stdout=subprocess.DEVNULL)


def pypi(place):
    for name in PYPI:
        done = subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:", "--dest", place, name],
            capture_output=True, text=True,
        )
        if done.returncode:
            print(f"left out: {name}", file=sys.stderr)
    for wheel in place.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(place / wheel.stem)
        wheel.unlink()


def npm(place):
    for name in NPM:
        done = subprocess.run(["npm", "pack", "--silent", "--ignore-scripts", name], cwd=place, capture_output=True, text=True)
        if done.returncode:
            print(f"left out: {name}", file=sys.stderr)
    for package in place.glob("*.tgz"):
        with tarfile.open(package) as archive:
            archive.extractall(place / package.stem, filter="data")
        package.unlink()


def fetched(name, fetch):
    place = PLACE / name
    if not place.exists():
        part = PLACE / f"{name}.part"
        run("rm", "-rf", part)
        part.mkdir(parents=True)
        fetch(part)
        part.rename(place)
    return place


def postern(executable, place):
    done = subprocess.run([executable, "dlp", "scan", "--confidence", "Medium", "-o", "json", place], capture_output=True, text=True)
    said = json.loads(done.stdout)
    return said["bytes"], Counter((one["confidence"], one["detector"]) for one in said["findings"])


def gitleaks(place):
    executable = PLACE / "bin/gitleaks"
    if not executable.exists():
        run("go", "install", GITLEAKS, env=os.environ | {"GOBIN": str(executable.parent)})
    report = PLACE / "gitleaks.json"
    run(executable, "dir", place, "--no-banner", "--log-level=error", "--exit-code=0", "--report-format=json", f"--report-path={report}")
    return Counter(one["RuleID"] for one in json.loads(report.read_text()))


def detect_secrets(place):
    environment = PLACE / "venv"
    if not environment.exists():
        run(sys.executable, "-m", "venv", environment)
        run(environment / "bin/pip", "install", "--quiet", "detect-secrets==1.5.0")
    done = run(environment / "bin/detect-secrets", "scan", "--all-files", "--no-verify", place, cwd=place, capture_output=True, text=True)
    return Counter(one["type"] for found in json.loads(done.stdout)["results"].values() for one in found)


def sample(places):
    """One file of twenty: the others would take hours for all."""
    target = PLACE / "sample"
    if not target.exists():
        part = PLACE / "sample.part"
        run("rm", "-rf", part)
        files = [file for place in places for file in sorted(place.rglob("*")) if file.is_file() and not file.is_symlink()]
        for number, file in enumerate(files[::20]):
            to = part / str(number // 500) / f"{number}-{file.name}"
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, to)
        part.rename(target)
    return target


def beside(executable, place):
    """The same files by each."""
    megabytes = 0
    for name, scan in (("postern", lambda place: postern(executable, place)), ("gitleaks", gitleaks), ("detect-secrets", detect_secrets)):
        begun = time.monotonic()
        found = scan(place)
        if name == "postern":
            size, found = found
            megabytes = size / 1e6
        table(f"Sample of {megabytes:.0f} MB, {name}", megabytes, time.monotonic() - begun, found)


def table(name, megabytes, seconds, counts):
    print(f"\n{name}: {sum(counts.values())} findings, {sum(counts.values()) / megabytes:.3f} a MB, {megabytes / seconds:.0f} MB/s")
    for what, count in counts.most_common(15):
        what = " ".join(what) if isinstance(what, tuple) else what
        print(f"  {what:<44} {count:>6}  {count / megabytes:.4f}")


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--postern", type=Path, default=ROOT / "target/release/postern")
    arguments.add_argument("--beside", action="store_true", help="also gitleaks and detect-secrets, which take much longer")
    options = arguments.parse_args()
    total, size, lasted = Counter(), 0, 0.0
    places = []
    for name, fetch in (("crates", crates), ("pypi", pypi), ("npm", npm)):
        place = fetched(name, fetch)
        places.append(place)
        begun = time.monotonic()
        count, found = postern(options.postern, place)
        took = time.monotonic() - begun
        size, total, lasted = size + count, total + found, lasted + took
        table(f"{name}, {count / 1e6:.0f} MB", count / 1e6, took, found)
    table(f"All, {size / 1e6:.0f} MB", size / 1e6, lasted, total)
    if options.beside:
        beside(options.postern, sample(places))
    high = sum(count for (confidence, detector), count in total.items() if confidence == "High" and detector != "private-key")
    medium = sum(count for (confidence, _), count in total.items() if confidence == "Medium")
    print(f"\nHigh but for private keys {high / size * 1e6:.4f} a MB (budget 0.005), Medium {medium / size * 1e6:.3f} (0.2)")
    return 0 if high / size * 1e6 <= 0.005 and medium / size * 1e6 <= 0.2 else 1


if __name__ == "__main__":
    sys.exit(main())
