import asyncio


async def ticks(n):
    try:
        for i in range(n):
            await asyncio.sleep(0)
            yield i
    finally:
        await asyncio.sleep(0)


async def doubled(source):
    async for value in source:
        yield 2 * value


async def early():
    async for value in doubled(ticks(5)):
        if value == 4:
            break
    stream = ticks(3)
    await stream.asend(None)
    await stream.aclose()
    return value


async def both():
    return await asyncio.gather(early(), collect())


async def collect():
    return [x async for x in ticks(2)], {x: 1 async for x in ticks(1)}


loop = asyncio.new_event_loop()
loop.run_until_complete(both())
loop.run_until_complete(loop.shutdown_asyncgens())
loop.close()
