"""The stand-in for the three providers: a TLS server that plays a task's script and keeps every turn that reaches it."""

import gzip
import json
import ssl
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread

from dialects import JSON, SSE, Anthropic, Gemini, Responses
from websocket import TEXT, accepted, frame, messages

DIALECTS = {dialect.host: dialect for dialect in (Anthropic(), Responses(), Gemini())}
# Where a command asks that something becomes of the gateway, while none of its requests is under way.
INTERRUPT = "/interrupt/"
# Claude Code does not start as long as one of its hosts answers anything else.
GREETINGS = ("/api/hello", "/v1/oauth/hello")


class StandIn:
    """Listens on the loopback address until it is left. `play` gives it a script, or none; since then `turns` has the
    bodies of turns with their bytes, `received` those of all requests. A command of an agent calls `interrupt` with a word.
    Where it `speaks_websocket`, the turns over one are counted in `messages`."""

    def __init__(self, certificate, key):
        self.lock, self.script, self.turns, self.received, self.interrupt = Lock(), None, [], [], None
        self.speaks_websocket, self.messages = False, 0
        standin = self

        class Handler(BaseHTTPRequestHandler):
            """Answers on behalf of the stand-in."""

            protocol_version = "HTTP/1.1"
            # Head and body leave together: otherwise each answer waits for the gateway's system to acknowledge the head.
            wbufsize = -1

            def do_GET(self):  # noqa: N802
                if self.headers.get("upgrade") and standin.speaks_websocket:
                    return self.converse()
                if self.headers.get("upgrade"):
                    # Codex falls back to requests at once.
                    return self.send(426, JSON, "{}")
                if self.path.startswith(INTERRUPT):
                    standin.interrupt(self.path.removeprefix(INTERRUPT))
                    return self.send(200, JSON, "{}")
                greets = self.path.split("?")[0] in GREETINGS
                return self.send(200 if greets else 404, JSON, '{"message": "hello"}' if greets else '{"error": {"message": "nothing here"}}')

            do_HEAD = do_GET  # noqa: N815

            def do_POST(self):  # noqa: N802
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                dialect, path = DIALECTS.get(self.headers["host"].split(":")[0]), self.path.split("?")[0]
                if dialect is None or not path.endswith(dialect.paths):
                    return self.send(404, JSON, '{"error": {"message": "nothing here"}}')
                kind, text = standin.answer(dialect, json.loads(body), len(body))
                if kind is None:
                    streams = path.endswith(":streamGenerateContent")
                    kind, text = (SSE, f"data: {json.dumps(text)}\r\n\r\n") if streams else (JSON, json.dumps(text))
                return self.send(200, kind, text)

            def converse(self):
                self.send_response(101)
                for name, value in (("upgrade", "websocket"), ("connection", "upgrade"), ("sec-websocket-accept", accepted(self.headers["sec-websocket-key"]))):
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.flush()
                said = {}
                for text in messages(self.rfile.read, self.tell):
                    for event in standin.reply(DIALECTS[self.headers["host"].split(":")[0]], json.loads(text), len(text.encode()), said):
                        self.tell(frame(TEXT, json.dumps(event).encode()))
                self.close_connection = True

            def tell(self, data):
                self.wfile.write(data)
                self.wfile.flush()

            def send(self, status, kind, text):
                body = text.encode()
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.address = f"127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self):
        self.thread = Thread(target=self.server.serve_forever)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def play(self, script):
        """From now on turns are answered by this script."""
        with self.lock:
            self.script, self.turns, self.received = script, [], []

    def reply(self, dialect, asked, size, said):
        """The events that answer a message. `said` has all items up to each response, by its id: messages carry new ones alone."""
        before = said.get(asked.get("previous_response_id"), [])
        asked = {**asked, "stream": True, "input": [*before, *asked.get("input", [])]}
        if asked.get("generate") is False:
            events = dialect.silent(asked)
        else:
            _, text = self.answer(dialect, asked, size)
            events = [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: ")]
        response = next(event["response"] for event in events if event["type"] == "response.completed")
        # Ids are of the number of results: one that stands for more is the newer.
        said[response["id"]] = [*asked["input"], *response["output"]]
        self.messages += 1
        return events

    def answer(self, dialect, asked, size):
        with self.lock:
            self.received.append(asked)
            if self.script is None or not dialect.is_turn(asked):
                return dialect.answer(asked, None, 0)
            results = dialect.results(asked)
            self.turns.append((asked, size))
            return dialect.answer(asked, self.script.next(results), len(results))
