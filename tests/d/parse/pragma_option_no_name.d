#pragma D option =1 /* error: D_PRAGMA_MALFORM */
