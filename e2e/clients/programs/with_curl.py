"""One request by curl: OPTION METHOD URL SIZE [NAME:VALUE]…, where OPTION is --http1.1 or --http2."""

import re
import subprocess
import sys

import report

option = sys.argv.pop(1)
method, url, body, headers = report.asked()
command = ["curl", option, "--verbose", "--silent", "--show-error", "--max-time", "30", "--request", method]
command += ["--write-out", "%{stderr}\nstatus %{http_code} version %{http_version}\n", url]
command += [part for name, value in headers.items() for part in ("--header", f"{name}: {value}")]
command += ["--data-binary", "@-"] if body else []
done = subprocess.run(command, input=body, capture_output=True, check=False)
answer = done.stderr.decode()
if done.returncode:
    report.failure(next(line for line in answer.splitlines() if line.startswith("curl: ")))
else:
    issuer = re.search(r"issuer: .*CN=([^;\n]*)", answer)
    status, version = re.search(r"status (\d+) version (\S+)", answer).groups()
    report.answer(status, issuer[1].strip() if issuer else "", version, done.stdout)
