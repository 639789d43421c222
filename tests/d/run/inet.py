import socket


def abcdefghijklmnop():
    pass


# The functions' names are the addresses.
name = abcdefghijklmnop.__name__.encode()
assert socket.inet_ntop(socket.AF_INET6, name) == "6162:6364:6566:6768:696a:6b6c:6d6e:6f70"
assert name[:6].hex(":") == "61:62:63:64:65:66"
assert socket.inet_ntoa(name[:4]) == "97.98.99.100"
abcdefghijklmnop()
