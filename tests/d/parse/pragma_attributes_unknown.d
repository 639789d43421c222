#pragma D attributes Good/Good/Common x /* error: D_PRAGMA_INVAL */
