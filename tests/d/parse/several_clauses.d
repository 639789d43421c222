BEGIN { x = ; } /* error: D_SYNTAX */
tick-1s / ( / { } /* error: D_SYNTAX */
END { y = 089; } /* error: D_INT_DIGIT */
