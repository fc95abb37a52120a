"""One request by httpx, over h2, with the chain checks that Python 3.13 has on by default: METHOD URL SIZE [NAME:VALUE]…"""

import os
import ssl

import httpx
import report

method, url, body, headers = report.asked()
tls = ssl.create_default_context(cafile=os.environ["SSL_CERT_FILE"])
tls.verify_flags |= ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
try:
    with httpx.Client(http2=True, verify=tls, timeout=30) as client:
        with client.stream(method, url, headers=headers, content=body) as answer:
            session = answer.extensions["network_stream"].get_extra_info("ssl_object")
            issuer = report.issuer(session.getpeercert()) if session else ""
            content = answer.read()
    report.answer(answer.status_code, issuer, answer.http_version, content)
except httpx.HTTPError as error:
    report.failure(error)
