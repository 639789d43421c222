#pragma D option quiet destructive /* error: D_PRAGMA_MALFORM */
