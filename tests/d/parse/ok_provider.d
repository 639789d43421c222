provider python {
	probe function__entry(const char *, const char *, int);
	probe gc__start(int generation);
	probe idle();
	probe nothing(void);
};
/* @@then: no probes specified */
