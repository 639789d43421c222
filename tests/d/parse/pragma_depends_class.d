#pragma D depends_on nothing x /* error: D_PRAGMA_INVAL */
