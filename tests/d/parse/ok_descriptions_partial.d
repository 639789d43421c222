entry, open:entry, mod:open:entry { }
/* @@then: \[D_PDESC_ZERO\] */
