BEGIN / 1 / /* error: D_SYNTAX */
