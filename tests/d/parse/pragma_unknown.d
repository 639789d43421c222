#pragma D nosuch /* error: D_PRAGMA_INVAL */
