print("", end="")
