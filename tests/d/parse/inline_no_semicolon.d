inline int x = 1
BEGIN { } /* error: D_SYNTAX */
