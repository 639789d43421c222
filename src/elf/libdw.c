#include "elf/libdw.h"

LIBRARY_DEFINE(libdw, LIBDW, "libdw.so.1", "libdw1")
