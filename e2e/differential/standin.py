"""A server of Chat Completions that notes the one request it gets, and gives the answer that it was told to give."""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


class StandIn:
    """Listens on the loopback address until it is left. One exchange at a time: `answer` before it, `asked` after it."""

    def __enter__(self):
        standin = self

        class Handler(BaseHTTPRequestHandler):
            """Answers on behalf of the stand-in."""

            protocol_version = "HTTP/1.1"
            # Head and body leave together: otherwise each answer waits for the gateway's system to acknowledge the head.
            wbufsize = -1

            def do_POST(self):  # noqa: N802
                standin.asked = self.rfile.read(int(self.headers["content-length"]))
                text, kind = standin.answer
                body = text.encode()
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.answer, self.asked = None, None
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.address = f"127.0.0.1:{self.server.server_address[1]}"
        self.thread = Thread(target=self.server.serve_forever)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()
