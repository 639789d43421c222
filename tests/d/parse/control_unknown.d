#nosuch /* error: D_PRAGCTL_INVAL */
