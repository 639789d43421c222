BEGIN { x = 1 & &y == 0 && 1; x = a &&b; x = a ^^b ^c; }
/* @@then: \[D_IDENT_UNDEF\] */
