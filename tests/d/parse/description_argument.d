pid$1:::entry { } /* error: D_PDESC_INVAL */
