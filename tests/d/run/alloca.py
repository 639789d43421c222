def twelve_bytes():
    pass


twelve_bytes()
