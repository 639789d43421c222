int*:::entry, string:::x, uint64_t::f:entry { }
/* @@then: \[D_PDESC_ZERO\] */
