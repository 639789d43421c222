#line 1 nothing /* error: D_PRAGMA_MALFORM */
