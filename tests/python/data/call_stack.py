def function_1():
    function_3("a", "b")

# The HOWTO shows the output of this program and not the program:
def function_2():
    function_1()

# each function stands on the line that is shown, and calls what is shown below it.
def function_3(first, second):
    pass


def function_4(**named):
    return named



def function_5(first, second, **named):
    if not first:
        return 1
    return 2

def start():
    function_1()
    function_2()
    function_3("a", "b")
    function_4(word="a")
    function_5(*("a", "b"), **{"word": "c"})

start()
