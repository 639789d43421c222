struct out { int x; };
translator struct out < int n > { };
/* @@then: no probes specified */
