import os

# The bytes of the guide's example.
os.write(os.open("/dev/null", os.O_WRONLY), bytes.fromhex(
    "c0de09c24ae82754dcf89ff19a204bd1"
    "9c7a7a851b030afb3a818a1b2535b39a"
    "f17de62b666d1c11f8eb407f659a25f8"
    "c86887b26f48a2a5f3a21f46ab3df9d2"
    "3db84cc0413cf73ccd18ad0d0dd31a90"))
