# Functions that come and go: the code and the name of one have the places in memory of those of the one before.
import gc
import types


def leaf():
    pass


def call(number, places):
    kept = []
    for _ in range(100):
        code = leaf.__code__.replace(co_name="new_%d" % number)
        if places in (None, (id(code), id(code.co_name))):
            break
        kept.append(code)
    function = types.FunctionType(code, {})
    for _ in range(number):
        function()
    return id(code), id(code.co_name)


places = None
for number in 3001, 3002, 3003, 3004, 3005:
    places = call(number, places)
    gc.collect()
