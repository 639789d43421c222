a:b:c:d:e { } /* error: D_PDESC_INVAL */
