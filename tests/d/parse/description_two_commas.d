BEGIN,, END { } /* error: D_SYNTAX */
