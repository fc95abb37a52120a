"""One request by requests: METHOD URL SIZE [NAME:VALUE]…"""

import report
import requests

method, url, body, headers = report.asked()
try:
    answer = requests.request(method, url, headers=headers, data=body, timeout=30, stream=True)
    socket = getattr(answer.raw.connection, "sock", None)
    issuer = report.issuer(socket.getpeercert()) if hasattr(socket, "getpeercert") else ""
    report.answer(answer.status_code, issuer, answer.raw.version / 10, answer.content)
except requests.RequestException as error:
    report.failure(error)
