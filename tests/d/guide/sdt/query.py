import gc


def query(text):
    return text.upper()


def main():
    for text in ("select", "insert", "select"):
        query(text)
    gc.collect(0)


gc.disable()
main()
