class Pause:
    def __await__(self):
        yield 1
        return 5


async def leaf(n):
    return n + await Pause()


async def values():
    for i in range(2):
        yield await leaf(i)


async def main():
    total = 0
    async for v in values():
        total += v
    async with Manager() as m:
        total += m
    return [x async for x in values()]


class Manager:
    async def __aenter__(self):
        return await leaf(1)

    async def __aexit__(self, *exc):
        await leaf(2)


c = main()
try:
    while True:
        c.send(None)
except StopIteration as e:
    result = e.value
