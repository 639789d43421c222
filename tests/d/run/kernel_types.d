/*
 * The kernel's own structures by its type information, and those of share/dlib that are translated from them.
 * @@python: 3.11
 * @@pids: machine
 */
syscall::write:entry
/pid == $target && copyinstr(arg1, arg2 + 1) == "here"/
{
	printf("%d %d %d\n", curthread->tgid == pid, curthread->pid == tid, curthread->group_leader == curthread);
	printf("%d %d\n", stringof(curthread->comm) == execname, curthread->static_prio - 120);
	printf("%d %d\n", ((struct vmlinux`task_struct *)curthread)->tgid == pid,
	    (kernel`u8)0x1ff + sizeof (`u64) + sizeof (union kernel`sigval));
	printf("%d %d %d %d\n", curpsinfo->pr_pid == pid, curpsinfo->pr_uid == uid, curpsinfo->pr_euid == uid,
	    curpsinfo->pr_addr == (uintptr_t)curthread);
	printf("%d %d %d\n", curpsinfo->pr_nlwp >= 1, curpsinfo->pr_pgid == curpsinfo->pr_pid,
	    curpsinfo->pr_argv == curthread->mm->arg_start);
	printf("%s %d\n", curpsinfo->pr_psargs == execargs ? "psargs" : "", curlwpsinfo->pr_lwpid == tid);
	printf("%c %d %d %d\n", curlwpsinfo->pr_sname, curlwpsinfo->pr_state == SONPROC, curlwpsinfo->pr_nice,
	    curlwpsinfo->pr_onpro == curcpu->cpu_id);
	printf("%s %d %s\n", fds[arg0].fi_name, (fds[arg0].fi_oflags & (O_ACCMODE | O_APPEND)) == (O_WRONLY | O_APPEND),
	    fds[12345].fi_name);
	printf("%d %d\n", xlate <psinfo_t *> (curthread->real_parent)->pr_pid == ppid,
	    xlate <psinfo_t> (curthread).pr_ppid == ppid);
	printf("%d\n", offsetof(struct list_head, prev));
}
syscall::write:entry
/pid == $target && copyinstr(arg1, arg2 + 1) == "there"/
{
	printf("%d %d %d\n", curthread->pid == tid, curthread->group_leader == curthread, curpsinfo->pr_nlwp);
}
/* @@output
1 0 2
1 1 1
1 3
1 271
1 1 1 1
1 0 1
psargs 1
O 1 3 1
null 1 <none>
1 1
8
*/
