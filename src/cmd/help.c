#include "cmd/help.h"

#include <getopt.h>
#include <stdio.h>

#include "cmd/cmd.h"

int help_or_mistake(int c, const char *help)
{
	if (c != 'h')
		return CMD_USAGE;
	fputs(help, stdout);
	return CMD_OK;
}

bool help_has_words(int argc, int n, const char *help)
{
	if (argc - optind == n)
		return true;
	fputs(help, stderr);
	return false;
}
