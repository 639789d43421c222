def outer():
    x = 1

    def middle():
        nonlocal x

        def inner():
            return x
        x += inner()
        return inner

    class Local:
        y = x

        def method(self):
            def helper():
                return self.y
            return helper()

    return middle()() + Local().method()


outer()


def shadow():
    def shadow():
        return 1
    return shadow()


shadow()
