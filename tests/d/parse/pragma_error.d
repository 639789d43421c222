#pragma error /* error: D_PRAGERR */
