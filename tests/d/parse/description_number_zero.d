0 { } /* error: D_PDESC_INVAL */
