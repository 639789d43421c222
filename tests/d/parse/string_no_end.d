BEGIN {
/* error: D_SYNTAX */ trace("a); }