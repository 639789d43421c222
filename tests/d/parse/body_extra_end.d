BEGIN { }
} /* error: D_SYNTAX */
END { }
