"""A service of asyncio with an order that nobody pays; the number of the process is printed when it waits for that."""
import asyncio
import os


class Order:
    def __init__(self, number):
        self.number = number
        self.paid = asyncio.get_running_loop().create_future()


async def payment(order):
    await order.paid


async def ship(number):
    await payment(Order(number))


async def main(ready):
    tasks = [asyncio.create_task(ship(17), name="order 17"), asyncio.create_task(asyncio.sleep(3600), name="night")]
    await asyncio.sleep(0)
    os.close(ready)
    await asyncio.gather(*tasks)


reader, writer = os.pipe()
child = os.fork()
if child:
    os.close(writer)
    os.read(reader, 1)
    print(child)
else:
    os.close(1)
    asyncio.run(main(writer))
