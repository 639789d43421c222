pid1:a.out:main:1f { }
/* @@then: \[D_(PDESC_ZERO|PROC_OFF|PROC_FUNC)\] */
