pid1:a.out:main:1f { }
/* @@then: \[D_PDESC_ZERO\] */
