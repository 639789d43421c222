BEGIN {
/* error: D_SYNTAX */ x = 'a