#pragma D attributes x /* error: D_PRAGMA_MALFORM */
