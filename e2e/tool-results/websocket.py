"""The server's end of a WebSocket (RFC 6455), as Codex opens one: text messages both ways, without extensions."""

import base64
import hashlib
import struct

# RFC 6455, section 1.3.
MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
TEXT, CLOSE, PING, PONG, CONTINUED = 1, 8, 9, 10, 0


def accepted(key):
    """The answer to a client's key."""
    return base64.b64encode(hashlib.sha1(key.encode() + MAGIC).digest()).decode()


def messages(read, write):
    """Each text that the client sends, until it closes. `read` gives exactly so many bytes, or fewer at the end."""
    whole = b""
    while head := read(2):
        kind, length = head[0] & 15, head[1] & 127
        if length > 125:
            length = int.from_bytes(read(2 if length == 126 else 8), "big")
        mask, data = read(4), read(length)
        data = bytes(byte ^ mask[place % 4] for place, byte in enumerate(data))
        if kind == CLOSE:
            write(frame(CLOSE, data))
            return
        if kind == PING:
            write(frame(PONG, data))
        elif kind in (TEXT, CONTINUED):
            whole += data
            if head[0] & 128:
                yield whole.decode()
                whole = b""


def frame(kind, data):
    """A message in one frame."""
    if len(data) < 126:
        length = bytes([len(data)])
    elif len(data) < 1 << 16:
        length = b"\x7e" + struct.pack(">H", len(data))
    else:
        length = b"\x7f" + struct.pack(">Q", len(data))
    return bytes([128 | kind]) + length + data
