dtrace:::BEGIN { }
syscall::open:entry { }
