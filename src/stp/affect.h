/* What handlers do to globals, for people: stap -p3 -vvv. */
#ifndef DTAP_STP_AFFECT_H
#define DTAP_STP_AFFECT_H

struct strbuf;
struct stp_prog;

/* Append, of a checked program, what each handler locks and whose condition it can change. */
void stp_dump_locks(struct strbuf *out, const struct stp_prog *p);

#endif
