#pragma D depends_on /* error: D_PRAGMA_MALFORM */
