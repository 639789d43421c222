BEGIN { x = (long short)0;		/* error: D_UNKNOWN */ }
BEGIN { x = (signed unsigned)0;		/* error: D_UNKNOWN */ }
BEGIN { return 1;			/* error: D_SYNTAX */ }
