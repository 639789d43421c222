int*:::entry, string:::x, uint64_t::f:entry { }
