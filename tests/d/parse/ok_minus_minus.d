BEGIN { x = a - --b; x = a-- - b; x = a - -b; }
/* @@then: \[D_IDENT_UNDEF\] */
