provider p { probe x(int); };
#pragma D attributes Evolving/Evolving/Common provider p provider
#pragma D attributes Private/Private/Unknown provider p module
/* @@then: no probes specified */
