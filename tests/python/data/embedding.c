/*
 * A program that embeds Python: LIVES interpreters, one after another; between two lines of stdin if there is a second argument.
 * Instead of a number "sub": subinterpreters of one, which work at each line, without an audit event.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void Py_InitializeEx(int);
int Py_FinalizeEx(void);
int PyRun_SimpleString(const char *);
void *PyImport_AddModule(const char *);
void *PyObject_GetAttrString(void *, const char *);
void *PyObject_CallObject(void *, void *);
void *Py_NewInterpreter(void);
void *PyThreadState_Swap(void *);
void *PyEval_SaveThread(void);
void PyEval_RestoreThread(void *);

/* Not asyncio: 3.9's keeps a running loop from the interpreter before, and dies of that without dtap as well. */
static const char before[] =
	"import gc, sys, threading\n"
	"def leaf(): pass\n"
	"def gen(): yield 1\n"
	"def raises():\n"
	"    try: raise ValueError('x')\n"
	"    except ValueError: pass\n"
	"class A:\n"
	"    def __init__(self): self.me = self\n";
static const char work[] =
	"for i in range(50):\n"
	"    leaf(); list(gen()); raises(); A()\n"
	"gc.collect()\n"
	"threads = [threading.Thread(target=leaf) for _ in range(3)]\n"
	"[t.start() for t in threads]; [t.join() for t in threads]\n"
	"sys.setprofile(lambda *a: None); leaf(); sys.setprofile(None)\n"
	"sys.settrace(lambda *a: None); leaf(); sys.settrace(None)\n";

static int subinterpreters(void)
{
	enum { N = 3 };
	static const char quiet[] =
		"import gc\n"
		"def leaf(): pass\n"
		"def work():\n"
		"    for i in range(50): leaf()\n"
		"    gc.collect()\n"
		"gc.disable()\n";
	void *threads[N], *works[N], *thread;
	char line[16];

	Py_InitializeEx(0);
	for (int i = 0; i < N; i++) {
		threads[i] = Py_NewInterpreter();
		if (!threads[i] || PyRun_SimpleString(quiet))
			return 1;
		works[i] = PyObject_GetAttrString(PyImport_AddModule("__main__"), "work");
	}
	for (;;) {
		thread = PyEval_SaveThread();
		puts("ready");
		fflush(stdout);
		if (!fgets(line, sizeof(line), stdin))
			return 0;
		PyEval_RestoreThread(thread);
		for (int i = 0; i < N; i++) {
			PyThreadState_Swap(threads[i]);
			if (!PyObject_CallObject(works[i], NULL))
				return 1;
		}
	}
}

int main(int argc, char **argv)
{
	char line[16];
	int lives = argc > 1 ? atoi(argv[1]) : 1;

	if (argc > 1 && !strcmp(argv[1], "sub"))
		return subinterpreters();
	for (int i = 0; i < lives; i++) {
		void *thread;

		Py_InitializeEx(0);
		if (PyRun_SimpleString(before))
			return 1;
		if (argc > 2) {
			thread = PyEval_SaveThread();
			puts("ready");
			fflush(stdout);
			if (!fgets(line, sizeof(line), stdin))
				return 1;
			PyEval_RestoreThread(thread);
		}
		if (PyRun_SimpleString(work) || Py_FinalizeEx() < 0)
			return 1;
	}
	puts("done");
	return 0;
}
