import os
def leaf(): pass
leaf()
child = os.fork()
leaf()
if child:
    os.waitpid(child, 0)
