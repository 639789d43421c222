/* An embedding program that fires the markers as ceval.c and gcmodule.c do. */
#include "pydtrace_probes.h"

int main(void)
{
	if (PyDTrace_FUNCTION_ENTRY_ENABLED())
		PyDTrace_FUNCTION_ENTRY("demo.py", "start", 3);
	if (PyDTrace_LINE_ENABLED())
		PyDTrace_LINE("demo.py", "start", 4);
	if (PyDTrace_GC_START_ENABLED())
		PyDTrace_GC_START(2);
	if (PyDTrace_GC_DONE_ENABLED())
		PyDTrace_GC_DONE(1234567890123l);
	if (PyDTrace_IMPORT_FIND_LOAD_START_ENABLED())
		PyDTrace_IMPORT_FIND_LOAD_START("json");
	if (PyDTrace_IMPORT_FIND_LOAD_DONE_ENABLED())
		PyDTrace_IMPORT_FIND_LOAD_DONE("json", 0);
	if (PyDTrace_AUDIT_ENABLED())
		PyDTrace_AUDIT("open", (void *)0);
	if (PyDTrace_FUNCTION_RETURN_ENABLED())
		PyDTrace_FUNCTION_RETURN("demo.py", "start", -1);
	return 0;
}
