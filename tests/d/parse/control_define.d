#define X 1 /* error: D_PRAGCTL_INVAL */
