"""Plain HTTP by Host: http.py HOST"""

import json
import socket
import sys

host = sys.argv[1]
with socket.create_connection((host, 80), timeout=10) as connection:
    connection.sendall(f"GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
    answer = b""
    while data := connection.recv(4096):
        answer += data
print(json.dumps(answer.decode()))
