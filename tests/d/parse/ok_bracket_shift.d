BEGIN { x = a[b[1] >> 2] >> 1; y = (int)x < 3 > 2; }
/* @@then: \[D_VAR_UNDEF\] */
