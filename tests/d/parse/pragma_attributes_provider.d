#pragma D attributes Stable/Stable/Common provider x /* error: D_PRAGMA_MALFORM */
