/* error: D_SYNTAX */ /* one /* two */
BEGIN { }
