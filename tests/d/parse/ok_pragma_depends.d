#pragma D depends_on provider python
#pragma D depends_on module vmlinux
#pragma D depends_on library procfs.d
/* @@then: no probes specified */
