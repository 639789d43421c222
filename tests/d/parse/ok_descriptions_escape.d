a:b:c\*d:e { }
/* @@then: \[D_PDESC_ZERO\] */
