/*
 * A folder of scripts, each put through a stage of the front end: there must be an error on each line that
 * carries a comment "error: TAG", with that tag, and no others.
 */
#ifndef DTAP_TESTS_D_SCRIPTS_H
#define DTAP_TESTS_D_SCRIPTS_H

struct arena;
struct diag;
struct source;

/* The body of a test program whose argument is the folder.  @stage reports to @diag, or fails the test. */
int scripts_main(int argc, char **argv, void (*stage)(struct arena *a, const struct source *src, struct diag *diag));

#endif
