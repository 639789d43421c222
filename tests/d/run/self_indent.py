import threading


def nest(levels):
    if levels > 1:
        nest(levels - 1)


def work():
    for _ in range(50):
        nest(3)


threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
