BEGIN { }
; /* error: D_SYNTAX */
