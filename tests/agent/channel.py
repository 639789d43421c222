"""The tracer's end of a channel to the agent: src/abi/agent.h in Python."""
import collections
import os
import socket
import struct

LAYOUT = struct.Struct("=HHIIIIIII200s")
VERSION = 2
HELLO, STATE, LOOK = 1, 2, 3
READY, OFF = 1, 2
TIMEOUT_S = 20

Message = collections.namedtuple("Message", "version kind seq pid phase python can supplied leave why")


class Channel:
    def __init__(self, sock):
        self.sock = sock
        self.seq = 0
        sock.settimeout(TIMEOUT_S)

    def receive(self):
        """The next message, or None at the channel's end."""
        data = self.sock.recv(4096)
        if not data:
            return None
        message = Message(*LAYOUT.unpack(data))
        assert message.version == VERSION
        return message._replace(why=message.why.split(b"\0")[0].decode())

    def look(self, leave=0):
        self.seq += 1
        self.sock.send(LAYOUT.pack(VERSION, LOOK, self.seq, os.getpid(), 0, 0, 0, 0, leave, b""))
        state = self.receive()
        assert state and state.kind == STATE and state.seq == self.seq, state
        return state

    def close(self):
        self.sock.close()


class Listener:
    """Where preloaded agents connect to; in DTAP_AGENT stands its name."""

    def __init__(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.name = f"dtap-test-{os.getpid()}-{id(self)}"
        self.sock.bind("\0" + self.name)
        self.sock.listen(20)
        self.sock.settimeout(TIMEOUT_S)

    def accept(self):
        return Channel(self.sock.accept()[0])

    def hello(self):
        """A new channel that a preloaded program no longer waits for, and its HELLO."""
        channel = self.accept()
        hello = channel.receive()
        assert hello.kind == HELLO and channel.look().supplied == 0
        return channel, hello

    def pending(self):
        self.sock.settimeout(0.3)
        try:
            return self.accept()
        except socket.timeout:
            return None
        finally:
            self.sock.settimeout(TIMEOUT_S)

    def close(self):
        self.sock.close()
