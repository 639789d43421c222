import gc
gc.disable()
for _ in range(3):
    for _ in range(100):
        loop = []
        loop.append(loop)
    gc.collect()
