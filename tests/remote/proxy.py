"""A proxy on loopback between a client and an object store: counts requests, is slow, and misbehaves when told to.

It forwards requests as they are, with their Host, so that signatures stay valid."""

import socket
import threading
import time


class Proxy:
    """Forwards to a port of this machine. `fault` is called with the number of each GET of a range, from 0 on since the
    last reset; it gives None, or what to do instead: a status, "cut" or "whole"."""

    def __init__(self, port, delay=0.0):
        self.target, self.delay, self.fault = port, delay, None
        self.requests, self.lock = [], threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def reset(self, fault=None):
        """Forgets the requests; what is done wrong from now on."""
        with self.lock:
            self.fault, taken, self.requests = fault, self.requests, []
        return taken

    def close(self):
        self.listener.close()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        upstream = socket.create_connection(("127.0.0.1", self.target))
        for one in (client, upstream):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            with client, upstream, client.makefile("rb") as asked, upstream.makefile("rb") as answers:
                while self._exchange(client, upstream, asked, answers):
                    pass
        except OSError:
            pass

    def _exchange(self, client, upstream, asked, answers):
        head, fields = _head(asked)
        if not head:
            return False
        body = asked.read(int(fields.get("content-length", 0)))
        method = head.split(b" ", 1)[0].decode()
        ranged = method == "GET" and "range" in fields
        with self.lock:
            number = sum(1 for one in self.requests if one[0] == "GET" and one[1])
            self.requests.append((method, fields.get("range")))
            fault = self.fault(number) if self.fault and ranged else None
        time.sleep(self.delay)
        if isinstance(fault, int):
            client.sendall(f"HTTP/1.1 {fault} x\r\nContent-Length: 0\r\n\r\n".encode())
            return True
        if fault == "whole":
            lines = head.split(b"\r\n")
            head = b"\r\n".join(line for line in lines if not line.lower().startswith(b"range:"))
        upstream.sendall(head + body)
        return self._answer(client, answers, method, fault)

    def _answer(self, client, answers, method, fault):
        head, fields = _head(answers)
        while head.startswith(b"HTTP/1.1 100"):
            client.sendall(head)
            head, fields = _head(answers)
        client.sendall(head)
        if method == "HEAD" or not head:
            return bool(head)
        if fields.get("transfer-encoding", "").lower() == "chunked":
            while True:
                line = answers.readline()
                size = int(line.split(b";")[0], 16)
                client.sendall(line + answers.read(size + 2))
                if size == 0:
                    return True
        left = int(fields.get("content-length", 0))
        if fault == "cut":
            client.sendall(answers.read(left // 2))
            return False
        while left > 0:
            piece = answers.read1(min(left, 1 << 20))
            if not piece:
                return False
            client.sendall(piece)
            left -= len(piece)
        return fields.get("connection", "").lower() != "close"


def _head(stream):
    """The head of a message, and its fields by lower-case names."""
    lines, fields = [], {}
    while True:
        line = stream.readline()
        lines.append(line)
        if line in (b"\r\n", b"\n", b""):
            break
        name, colon, value = line.decode("latin-1").partition(":")
        if colon and len(lines) > 1:
            fields[name.strip().lower()] = value.strip()
    return (b"".join(lines), fields) if lines[0] else (b"", {})
