"""Some tasks of asyncio, of which one holds the loop."""
import asyncio


async def fetch(name):
    for _ in range(3):
        await asyncio.sleep(0.001)
    return len(name)


async def report():
    await asyncio.sleep(0)
    return sum(k * k for k in range(100000))


async def main():
    names = "alice", "bob"
    tasks = [asyncio.create_task(fetch(name), name="fetch " + name) for name in names]
    tasks.append(asyncio.create_task(report(), name="report"))
    await asyncio.gather(*tasks)


asyncio.run(main())
