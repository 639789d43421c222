/* What stands in an if is checked as what does not. */
BEGIN { if ("a") trace(1);	/* error: D_PRED_SCALAR */ }
BEGIN { if (execname == "a") trace(unknown);	/* error: D_IDENT_UNDEF */ }
BEGIN { if (1) ; else if (0) { trace(); }	/* error: D_PROTO_LEN */ }
BEGIN { if (trace(1)) exit(0);	/* error: D_PRED_SCALAR */ }
BEGIN { if (@ = count()) exit(0);	/* error: D_CG_EXPR */ }
BEGIN { if (1) v = 1; else v = "one";	/* error: D_OP_INCOMPAT */ }
BEGIN { if (1) { if (1) speculate(1); trace(1);	/* error: D_SPEC_DREC */ } }
BEGIN { if (1) trace(1); else speculate(1); printf("x");	/* error: D_SPEC_DREC */ }
BEGIN { if (1) ; else speculate(1); if (1) speculate(2);	/* error: D_SPEC_SPEC */ }
BEGIN { if (1) speculate(1); if (1) @ = count();	/* error: D_AGG_SPEC */ }
BEGIN { trace(1); if (1) speculate(1);	/* error: D_SPEC_DREC */ }
BEGIN { if (1) trace(1); commit(1);	/* error: D_COMM_DREC */ }
BEGIN { if (1) commit(1); trace(1);	/* error: D_DREC_COMM */ }
BEGIN { speculate(1); if (1) exit(0);	/* error: D_EXIT_SPEC */ }
