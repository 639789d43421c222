#include "cmd/stap_run.h"

#include <errno.h>
#include <stdio.h>

#include "cmd/stap_msg.h"
#include "cmd/stap_opts.h"
#include "lang/diag.h"
#include "stp/stp.h"

int stap_translate(struct stap_program *p)
{
	diag_error(p->diag, (struct src_pos){ 0 }, "S_RUN", "semantic error: dtap reads and checks SystemTap scripts, it does not run them yet");
	return -EINVAL;
}

void stap_show_code(const struct stap_program *p)
{
	(void)p;
}

int stap_load(struct stap_program *p)
{
	(void)p;
	return 1;
}

int stap_run(struct stap_program *p)
{
	(void)p;
	return 1;
}

void stap_unload(struct stap_program *p)
{
	(void)p;
}
