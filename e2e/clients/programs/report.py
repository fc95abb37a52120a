"""The output of every fetching program: `status`, `issuer`, `version` or `error` lines, an empty line, the body."""

import sys


def answer(status, issuer, version, body):
    sys.stdout.buffer.write(f"status {status}\nissuer {issuer}\nversion {version}\n\n".encode() + body)


def failure(error):
    print("error " + " ".join(str(error).split()), end="\n\n")


def issuer(certificate):
    """The common name of the issuer in what `ssl.SSLSocket.getpeercert` returns."""
    fields = [field for name in (certificate or {}).get("issuer", ()) for field in name]
    return dict(fields).get("commonName", "")


def asked():
    """The request in the arguments: METHOD URL SIZE [NAME:VALUE]…; SIZE bytes are sent."""
    method, url, size, *headers = sys.argv[1:]
    return method, url, b"x" * int(size) or None, dict(header.split(":", 1) for header in headers)
