syscall::open*:entry, sys?all::[a-c]lose:*, syscall::[!x]*:entry, *:::*entry { }
