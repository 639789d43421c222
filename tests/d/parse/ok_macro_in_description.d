pid$pid:::entry, syscall::f$uid:entry { }
