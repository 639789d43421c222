#pragma D option /* error: D_PRAGMA_MALFORM */
