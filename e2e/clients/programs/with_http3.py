"""One request by a curl that has HTTP/3: v3 (HTTP/2 where QUIC is refused) or v3only, METHOD URL SIZE [NAME:VALUE]…"""

import os
import sys
import time

import report
from curl_cffi import requests

version = sys.argv.pop(1)
method, url, body, headers = report.asked()
roots, started = os.environ["CURL_CA_BUNDLE"], time.monotonic()
try:
    answer = requests.request(method, url, headers=headers, data=body, timeout=30, http_version=version, verify=roots)
    report.answer(answer.status_code, "", answer.http_version, answer.content)
except requests.exceptions.RequestException as error:
    report.failure(f"{error} ({time.monotonic() - started:.3f} s)")
