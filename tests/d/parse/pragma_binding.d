#pragma D binding 1.0 x /* error: D_PRAGMA_MALFORM */
