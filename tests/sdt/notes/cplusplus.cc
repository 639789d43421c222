/*
 * What only C++ has: scoped enumerations, references, wchar_t, nullptr, templates, lambdas, linkage blocks.
 *
 * want: types -1 -4 -4|4 1 P
 * want: fields -4 4
 * want: template -4
 * want: template -8
 * want: template 8f
 * want: lambda -4
 * want: method P -4
 * wchar_t is unsigned on aarch64.
 * ours only
 */
extern "C" {
#include <sys/sdt.h>
}

namespace deep {

enum class small : signed char { A = -1 };

struct object {
	int a : 3;
	unsigned b : 7;
	int n;
	void method() const { DTRACE_PROBE2(test, method, this, n); }
};

template <class T> void instance(T value)
{
	DTRACE_PROBE1(test, template, value);
}

void types(int &i, small s, const bool b, wchar_t w);
void types(int &i, small s, const bool b, wchar_t w)
{
	DTRACE_PROBE5(test, types, s, i, w, b, nullptr);
}

void uses(object &o);
void uses(object &o)
{
	DTRACE_PROBE2(test, fields, o.a, o.b);
	instance(1);
	instance(1ll);
	instance(1.0);
	auto lambda = [&](int k) { DTRACE_PROBE1(test, lambda, k + o.n); };
	lambda(5);
	o.method();
}

}
