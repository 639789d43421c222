long short x; /* error: D_UNKNOWN */
