/* Destructive actions in speculations, statements without effect, registers that are none. */
BEGIN { speculate(1); chill(1);		/* error: D_ACT_SPEC */ /* error: D_UNKNOWN */ }
BEGIN { speculate(1); copyout(0, 0, 1);	/* error: D_ACT_SPEC */ /* error: D_DESTRUCTIVE */ }
BEGIN { @b;				/* error: D_AGG_NULL */ }
BEGIN { @b[1];				/* error: D_AGG_NULL */ }
BEGIN { x = uregs[21];			/* error: D_UNKNOWN */ }
BEGIN { x = uregs[NOSUCH];		/* error: D_IDENT_UNDEF */ }
