/*
 * The shape of PostgreSQL's provider: types by macros for -C, empty argument lists, many probes.
 */
#define LocalTransactionId unsigned int
#define LWLockMode int
#define BlockNumber unsigned int
#define ForkNumber int
#define Oid unsigned int
#define bool unsigned char

provider postgresql {

	probe transaction__start(LocalTransactionId);
	probe transaction__commit(LocalTransactionId);
	probe transaction__abort(LocalTransactionId);

	probe lwlock__acquire(const char *, LWLockMode);
	probe lwlock__wait__done(const char *, LWLockMode);

	probe lock__wait__start(unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, LWLockMode);

	probe query__parse__start(const char *);
	probe query__plan__start();
	probe query__plan__done();

	probe sort__start(int, bool, int, int, bool, int);
	probe sort__done(bool, long);

	probe buffer__read__start(ForkNumber, BlockNumber, Oid, Oid, Oid, int, bool);
	probe buffer__read__done(ForkNumber, BlockNumber, Oid, Oid, Oid, int, bool, bool);

	probe checkpoint__done(int, int, int, int, int);
	probe deadlock__found();
	probe xlog__insert(unsigned char, unsigned char);
};
