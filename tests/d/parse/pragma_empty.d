#pragma D /* error: D_PRAGMA_INVAL */
