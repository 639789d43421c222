"""Three requests at the same time, in one thread; each waits for an answer."""
import asyncio


async def query(n):
    await asyncio.sleep(0.02 * n)
    return n * 10


async def handle(n):
    return await query(n) + 1


async def main():
    await asyncio.gather(*(handle(n) for n in (1, 2, 3)))


asyncio.run(main())
