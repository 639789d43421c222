def leaf():
    pass


def branch():
    for _ in range(3):
        leaf()


def root():
    branch()


root()
