BEGIN / a[1 / { } /* error: D_SYNTAX */
