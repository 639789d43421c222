/* The number and the types of arguments come before anything else that may be wrong with a call. */
BEGIN { copyout("x", "y", "z");		/* error: D_PROTO_ARG */ }
BEGIN { stop("x");			/* error: D_PROTO_LEN */ }
BEGIN { mutex_owned();			/* error: D_PROTO_LEN */ }
BEGIN { mutex_owned("x");		/* error: D_PROTO_ARG */ }
BEGIN { chill(1, 2);			/* error: D_PROTO_LEN */ }
BEGIN { return(1, 2);			/* error: D_PROTO_LEN */ }
BEGIN { return(return(0));		/* error: D_PROTO_ARG */ }
BEGIN { pcap(1);			/* error: D_PROTO_LEN */ }
BEGIN { pcap(1, "x");			/* error: D_PROTO_ARG */ }
BEGIN { printf("%d", printf(""));	/* error: D_PRINTF_ARG_TYPE */ }
BEGIN { trace(exit(0));			/* error: D_TRACE_VOID */ }
BEGIN { @a[stack()] = count(); printa("%p", @a);	/* error: D_PRINTF_ARG_TYPE */ }
