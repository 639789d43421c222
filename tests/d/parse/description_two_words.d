syscall open { } /* error: D_SYNTAX */
