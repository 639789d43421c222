#pragma once
#pragma GCC diagnostic push
#pragma ident "1.0"
#ident "1.0"
#
#pragma
/* @@then: no probes specified */
