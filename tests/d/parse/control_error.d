#error not here /* error: D_PRAGERR */
