"""An HTTP server that answers what a test tells it to, for faults that a real service does not have on demand."""

import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


HANG_UP = Answer(0)
"""Close the connection after the request, without an answer."""


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: Message
    body: bytes

    @property
    def parts(self):
        """The parts of a multipart body: name, file name, content."""
        head = f"Content-Type: {self.headers['Content-Type']}\r\n\r\n".encode()
        parts = message_from_bytes(head + self.body).get_payload()
        names = [part.get_param("name", header="content-disposition") for part in parts]
        return [
            (name, part.get_filename(), part.get_payload(decode=True))
            for name, part in zip(names, parts, strict=True)
        ]


@contextmanager
def scripted(*answers):
    """Serve ``answers`` in turn, the last one for ever, on loopback; one may be made of the request."""
    script = list(answers)
    requests = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            requests.append(Request(self.command, self.path, self.headers, body))
            answer = script.pop(0) if len(script) > 1 else script[0]
            answer = answer if isinstance(answer, Answer) else answer(requests[-1])
            if answer is HANG_UP:
                self.close_connection = True
                return
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer.body)

        do_GET = do_HEAD = do_PUT = do_POST  # noqa: N815  # the names that http.server calls

        def log_message(self, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield SimpleNamespace(url=f"http://127.0.0.1:{server.server_port}", requests=requests)
        finally:
            server.shutdown()
            thread.join()
