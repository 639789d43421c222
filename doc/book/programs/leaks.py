seen = []

def answer():
    text = bytes(9000)
    seen.append(bytes(5000))
    return len(text)

for _ in range(10):
    answer()
