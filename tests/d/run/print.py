def abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUV():
    pass


abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUV()
