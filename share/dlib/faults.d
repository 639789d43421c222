/*
 * Why a clause ended early: what ERROR's arg4 is.
 *
 * Guide: "dtrace Provider", "ERROR Probe".
 */
inline int DTRACEFLT_UNKNOWN = 0;
inline int DTRACEFLT_BADADDR = 1;	/* arg5: the address */
inline int DTRACEFLT_BADALIGN = 2;	/* arg5: the address */
inline int DTRACEFLT_ILLOP = 3;
inline int DTRACEFLT_DIVZERO = 4;
inline int DTRACEFLT_NOSCRATCH = 5;
inline int DTRACEFLT_KPRIV = 6;
inline int DTRACEFLT_UPRIV = 7;
inline int DTRACEFLT_TUPOFLOW = 8;
inline int DTRACEFLT_BADSTACK = 9;
inline int DTRACEFLT_BADSIZE = 10;	/* arg5: the size */
inline int DTRACEFLT_BADINDEX = 11;	/* arg5: the index */
/* Of values of Python, arg5: the object */
inline int DTRACEFLT_VALUE_KIND = 22;
inline int DTRACEFLT_VALUE_NONE = 23;
inline int DTRACEFLT_VALUE_COMPUTED = 24;
inline int DTRACEFLT_VALUE_RANGE = 25;
inline int DTRACEFLT_VALUE_UNKNOWN = 26;
inline int DTRACEFLT_LIBRARY = 1000;
