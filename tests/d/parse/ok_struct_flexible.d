struct s { int n; char tail[]; };
/* @@then: no probes specified */
