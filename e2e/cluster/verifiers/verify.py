"""A client of Python: `verify.py ROOTS.pem NAME PORT [strict]`; exits 0 where it accepts the certificate, 1 where it does not."""

import socket
import ssl
import sys

roots, name, port, *strict = sys.argv[1:]
context = ssl.create_default_context(cafile=roots)
if strict:
    # What Python 3.13 has on by default.
    context.verify_flags |= ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
try:
    with socket.create_connection(("127.0.0.1", int(port))) as tcp, context.wrap_socket(tcp, server_hostname=name):
        print("accepted")
except ssl.SSLCertVerificationError as refusal:
    print(refusal.verify_message)
    sys.exit(1)
except OSError as broken:
    print(broken)
    sys.exit(2)
