"""A server that forks: two workers, to which their parent gives ten jobs each."""
import os


def handle(job):
    return job * job


def work(jobs):
    while job := os.read(jobs, 1):
        handle(job[0])
    os._exit(0)


def main():
    pipes = []
    for _ in range(2):
        reader, writer = os.pipe()
        if not os.fork():
            for pipe in [*pipes, writer]:
                os.close(pipe)
            work(reader)
        os.close(reader)
        pipes.append(writer)
    for n in range(20):
        os.write(pipes[n % 2], bytes([n + 1]))
    for pipe in pipes:
        os.close(pipe)
    for _ in pipes:
        os.wait()


main()
