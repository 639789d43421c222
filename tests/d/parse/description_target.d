python$target:::gc-start { } /* error: D_PDESC_INVAL */
