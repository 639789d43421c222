BEGIN { @a = count(); printa(@a); printa("%@d\n", @a); printa("%@d %@d\n", @a, @b); }
/* @@then: \[D_PRINTA_AGGBAD\] */
