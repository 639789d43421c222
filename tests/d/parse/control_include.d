#include <stdio.h> /* error: D_PRAGCTL_INVAL */
