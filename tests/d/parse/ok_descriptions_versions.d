pid1:libc.so.6:malloc@@GLIBC_2.2.5:entry, pid1:a.out:f.isra.0:return { }
/* @@then: \[D_(PDESC_ZERO|PROC_OFF|PROC_FUNC)\] */
