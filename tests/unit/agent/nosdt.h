/* Before all else: no markers.  A process with markers of provider python is one that scripts about all Pythons look into. */
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>
#undef STAP_PROBEV
#define STAP_PROBEV(provider, name, ...)
