#!/usr/bin/env -S dtrace -s
/*
 * @summary: how long calls of some functions take, as a distribution, and the slowest calls with what they waited for
 * @field: waited WAITED time
 * @field: called IN text
 * @field: with WITH text
 * @field: sql SQL text
 * @field: where WHERE stack
 *
 * IN is the function of C that took the longest of each of them, WAITED for how long: sleep, recv, read, acquire, execute of
 * a database; one that computes is there like one that waits.  WITH has its arguments, of files the path, of sockets the addresses,
 * "?" for what is not certain, and for the first call that waits in a function of C that had been quick; SQL the statement of sqlite3 that it runs, or whose rows it fetches; WHERE the functions of Python
 * that called it, with their lines.  What an operator, an await or a with statement does is no call of a function: (nothing) is in
 * IN if none was called.  The stack in C and in the kernel is not there, since they are told from within the process, as an
 * ordinary user can: for root dtap record --sample has it, and dtap lock who waits for locks.
 * Each call of a function of C in the program costs some ten nanoseconds, each within calls of FUNCTION one to three microseconds,
 * and where it can wait up to a hundred, since its arguments are shown: name functions that are called some hundred times a second.
 */

/* Of each call that is going on, the longest of the functions of C. */
self uint64_t most[int];
self string called[int];
self string with[int];
self string sql[int];
/* The function of C that is going on, and the statement that was run last. */
self int inside;
self uint64_t entered, span;
self int asks;
self string arguments;
self string ran;
/* Of each function of C, by its name; one that was slow, and has not been asked, is asked the next 16 times. */
enum { WAITS = -1, QUICK = 1 };
int manner[string];
inline int can_wait = index(" accept acquire close commit connect execute executemany fetchall fetchmany fetchone fsync get "
    "getaddrinfo join open poll put read readinto readline recv recv_into select send sendall sleep wait write ",
    strjoin(" ", strjoin(copyinstr(arg3), " ")));

$selected:entry,
$selected:resume
{
	self->most[self->depth] = 0;
	self->called[self->depth] = "(nothing)";
	self->with[self->depth] = "";
	self->sql[self->depth] = "";
}

python*:::cfunction-entry
/self->depth && ++self->inside == 1/
{
	self->entered = timestamp;
	self->arguments = "?";
	self->asks = manner[copyinstr(arg3)];
}

python*:::cfunction-entry
/self->inside == 1 && !self->asks/
{
	self->asks = can_wait >= 0 ? WAITS : QUICK;
	manner[copyinstr(arg3)] = self->asks;
}

python*:::cfunction-entry
/self->inside == 1 && self->asks > QUICK/
{
	manner[copyinstr(arg3)] = self->asks - 1;
}

/* The arguments are dear to show, so not of what only computes, and quickly. */
python*:::cfunction-entry
/self->inside == 1 && self->asks != QUICK/
{
	self->arguments = pyargs();
}

python*:::cfunction-entry
/self->inside == 1 && index(self->arguments, "<sqlite3.") == 0 && index(copyinstr(arg3), "execute") == 0/
{
	this->behind = index(self->arguments, ">, ");
	self->ran = this->behind < 0 ? "?" : substr(self->arguments, this->behind + 3);
}

python*:::cfunction-return
/self->depth && self->inside && --self->inside == 0/
{
	self->span = timestamp - self->entered;
}

python*:::cfunction-return
/self->span > 20000 && self->asks == QUICK/
{
	manner[copyinstr(arg3)] = QUICK + 16;
}

python*:::cfunction-return
/self->span > self->most[self->depth]/
{
	this->is_sqlite = index(self->arguments, "<sqlite3.") == 0;
	this->runs = index(copyinstr(arg3), "execute") == 0 || index(copyinstr(arg3), "fetch") == 0;
	self->most[self->depth] = self->span;
	self->called[self->depth] = copyinstr(arg3);
	self->with[self->depth] = self->arguments;
	self->sql[self->depth] = this->is_sqlite && this->runs ? self->ran : "";
	self->where[self->depth] = pystack(3, "line");
}

python*:::cfunction-return
/self->span/
{
	self->span = 0;
}

/* The call is over: depth is its caller's already. */
$selected:return,
$selected:raise,
$selected:yield
/self->took/
{
	self->inside = self->depth ? self->inside : 0;
}

/* What a call within waited for, its caller did, too. */
$selected:return,
$selected:raise,
$selected:yield
/self->took && self->depth && self->most[self->depth + 1] > self->most[self->depth]/
{
	self->most[self->depth] = self->most[self->depth + 1];
	self->called[self->depth] = self->called[self->depth + 1];
	self->with[self->depth] = self->with[self->depth + 1];
	self->sql[self->depth] = self->sql[self->depth + 1];
	self->where[self->depth] = self->where[self->depth + 1];
}

/* Only what may be among the slowest. */
$selected:return,
$selected:raise,
$selected:yield
/self->began && self->most[self->depth + 1]/
{
	printf("%d %d %d %d %s %s %s %d %s %s %s %k\n", self->took, self->began, pid, tid, probefunc, probename, pyargs(),
	    self->most[self->depth + 1], self->called[self->depth + 1], self->with[self->depth + 1], self->sql[self->depth + 1],
	    self->where[self->depth + 1]);
}

$selected:return,
$selected:raise,
$selected:yield
/self->began && !self->most[self->depth + 1]/
{
	printf("%d %d %d %d %s %s %s %d %s %s %s %k\n", self->took, self->began, pid, tid, probefunc, probename, pyargs(),
	    (uint64_t)0, "(nothing)", "", "", pystack(1, "line"));
}

$selected:return,
$selected:raise,
$selected:yield
/self->took/
{
	self->began = 0;
	self->took = 0;
	self->most[self->depth + 1] = 0;
	self->called[self->depth + 1] = "";
	self->with[self->depth + 1] = "";
	self->sql[self->depth + 1] = "";
}
