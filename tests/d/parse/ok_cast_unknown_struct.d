BEGIN { p = (struct never_seen *)0; }
