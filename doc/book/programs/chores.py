"""What an operator asks after: files, one of which stays open, a connection, a program, threads, a lock that is waited for."""
import os
import signal
import socket
import subprocess
import threading
import time

lock = threading.Lock()


def reads():
    with open("/etc/passwd") as file:
        return len(file.read())


def leaks():
    return os.open("/etc/os-release", os.O_RDONLY)


def connects():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()):
        pass


def runs():
    subprocess.run(["true", "and", "false"])


def waits():
    lock.acquire()


def threads():
    lock.acquire()
    thread = threading.Thread(target=waits, name="waiter")
    thread.start()
    time.sleep(0.02)
    lock.release()
    thread.join()


def signals():
    signal.signal(signal.SIGUSR1, lambda number, frame: None)
    os.kill(os.getpid(), signal.SIGUSR1)


def allocates():
    return [bytearray(1 << 20) for _ in range(3)]


for chore in (reads, leaks, connects, runs, threads, signals, allocates):
    chore()
