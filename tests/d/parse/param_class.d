int f(static int); /* error: D_DECL_PARMCLASS */
