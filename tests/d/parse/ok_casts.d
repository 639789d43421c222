BEGIN { x = (int)1; x = (uint64_t)-1; x = (int)(char)x; p = (char *)0; q = (void **)0; f = (int (*)(int))0; }
