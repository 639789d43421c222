"""The tracer's end of a channel to the agent: src/abi/agent.h in Python."""
import collections
import os
import secrets
import socket
import struct

LAYOUT = struct.Struct("=HHIIIIIIIQ200s")
VERSION = 6
HELLO, STATE, LOOK, SEGMENT, PROOF, ASK = 1, 2, 3, 4, 5, 6
READY, OFF = 1, 2
TIMEOUT_S = 60

Message = collections.namedtuple("Message", "version kind seq pid phase python can supplied leave proof why")


class Channel:
    def __init__(self, sock):
        self.sock = sock
        self.seq = 0
        sock.settimeout(TIMEOUT_S)

    def receive(self):
        """The next message, or None at the channel's end."""
        try:
            data = self.sock.recv(4096)
        except ConnectionResetError:    # the agent has closed its end without having read everything: told first, and once
            data = self.sock.recv(4096)
        if not data:
            return None
        message = Message(*LAYOUT.unpack(data))
        assert message.version == VERSION
        return message._replace(why=message.why.split(b"\0")[0].decode())

    def look(self, leave=0):
        self.ask_look(leave)
        return self.receive_state()

    def ask_look(self, leave=0):
        self.seq += 1
        self.sock.send(LAYOUT.pack(VERSION, LOOK, self.seq, os.getpid(), 0, 0, 0, 0, leave, 0, b""))

    def receive_state(self):
        """The answer."""
        state = self.receive()
        assert state and state.kind == STATE and state.seq == self.seq, state
        return state

    def close(self):
        self.sock.close()


class Listener:
    """Where preloaded agents connect to; in DTAP_AGENT stands its address."""

    def __init__(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.word = secrets.token_hex(16)
        self.name = f"dtap-{os.getpid()}-{secrets.token_hex(8)}"
        self.address = f"{self.name}:{self.word}"
        self.sock.bind("\0" + self.name)
        self.sock.listen(20)
        self.sock.settimeout(TIMEOUT_S)

    def accept_plain(self):
        """A channel by which somebody else introduces us to the agent."""
        return Channel(self.sock.accept()[0])

    def accept(self):
        """A channel whose agent has said the word, and been asked."""
        channel = self.accept_plain()
        proof = channel.receive()
        assert proof.kind == PROOF and proof.why == self.word
        channel.proof = secrets.randbits(64) | 1
        try:
            channel.sock.send(LAYOUT.pack(VERSION, ASK, 0, os.getpid(), 0, 0, 0, 0, 0, channel.proof, b""))
        except BrokenPipeError:         # a child that has ended already
            pass
        return channel

    def hello(self):
        """A new channel that a preloaded program no longer waits for, and its HELLO."""
        channel = self.accept()
        hello = channel.receive()
        assert hello.kind == HELLO and hello.proof == channel.proof and channel.look().supplied == 0
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
