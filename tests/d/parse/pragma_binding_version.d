#pragma D binding "one" x /* error: D_PRAGMA_INVAL */
