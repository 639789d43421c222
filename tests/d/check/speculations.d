/* The rules of the guide's chapter on speculations. */
BEGIN { speculate(1); speculate(2);	/* error: D_SPEC_SPEC */ }
BEGIN { commit(1); speculate(1);	/* error: D_SPEC_COMM */ }
BEGIN { trace(1); speculate(1);	/* error: D_SPEC_DREC */ }
BEGIN { commit(1); commit(1); discard(1); }
BEGIN { commit(1); exit(0);	/* error: D_DREC_COMM */ }
BEGIN { trace(1); commit(1);	/* error: D_COMM_DREC */ }
BEGIN { commit(1); trace(1);	/* error: D_DREC_COMM */ }
BEGIN { commit(1); @ = count();	/* error: D_AGG_COMM */ }
BEGIN { speculate(1); @ = count();	/* error: D_AGG_SPEC */ }
BEGIN { speculate(1); exit(0);	/* error: D_EXIT_SPEC */ }
BEGIN { speculate("a");	/* error: D_PROTO_ARG */ }
BEGIN { x = speculation(1);	/* error: D_PROTO_LEN */ }
