pid$:::entry { } /* error: D_PDESC_INVAL */
