BEGIN { @ = count(); @[pid] = sum(1); @a = avg(2); @b[execname, 1] = quantize(3); @_x1 = max(1); }
/* @@then: \[D_AGG_REDEF\] */
