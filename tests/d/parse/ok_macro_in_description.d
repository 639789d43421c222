pid$pid:::entry, syscall::f$uid:entry { }
/* @@then: \[D_PDESC_ZERO\] */
