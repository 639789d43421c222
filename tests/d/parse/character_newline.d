BEGIN {
	/* error: D_CHR_NL */ x = 'a
; }
