provider p { }
BEGIN { } /* error: D_SYNTAX */
