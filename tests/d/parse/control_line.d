#line nothing /* error: D_PRAGMA_MALFORM */
