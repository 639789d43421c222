/*
 * Processes and threads as proc(5) of Solaris has them: what curpsinfo, curlwpsinfo and the arguments of proc and sched
 * probes are.
 *
 * Guide: "proc Provider", "lwpsinfo_t", "psinfo_t".  What Linux does not have (tasks, projects, zones of Solaris) is 0;
 * a member without a conversion is one that the kernel does not keep in one place (sizes and times).
 */
#pragma D depends_on module vmlinux

typedef struct timestruc {
	long tv_sec;
	long tv_nsec;
} timestruc_t;

typedef struct lwpsinfo {
	int pr_flag;		/* PR_ISTOP ... */
	id_t pr_lwpid;
	uintptr_t pr_addr;	/* the kernel's structure */
	uintptr_t pr_wchan;
	char pr_stype;
	char pr_state;		/* SRUN ... */
	char pr_sname;		/* the same as a letter, as ps(1) has it */
	char pr_nice;
	short pr_syscall;
	char pr_oldpri;
	char pr_cpu;
	int pr_pri;		/* the higher, the later: the kernel's */
	ushort_t pr_pctcpu;
	timestruc_t pr_start;
	timestruc_t pr_time;
	char pr_clname[8];
	string pr_name;
	processorid_t pr_onpro;	/* the CPU */
	processorid_t pr_bindpro;
	psetid_t pr_bindpset;
	int pr_lgrp;
} lwpsinfo_t;

inline char PR_MODEL_ILP32 = 1;
inline char PR_MODEL_LP64 = 2;

typedef struct psinfo {
	int pr_flag;
	int pr_nlwp;		/* threads */
	pid_t pr_pid;
	pid_t pr_ppid;
	pid_t pr_pgid;
	pid_t pr_sid;
	uid_t pr_uid;
	uid_t pr_euid;
	gid_t pr_gid;
	gid_t pr_egid;
	uintptr_t pr_addr;	/* the kernel's structure */
	size_t pr_size;
	size_t pr_rssize;
	struct tty_struct *pr_ttydev;	/* (struct tty_struct *)-1: none */
	ushort_t pr_pctcpu;
	ushort_t pr_pctmem;
	timestruc_t pr_start;
	timestruc_t pr_time;
	timestruc_t pr_ctime;
	int pr_wstat;
	int pr_argc;
	char pr_dmodel;		/* PR_MODEL_ */
	taskid_t pr_taskid;
	projid_t pr_projid;
	int pr_nzomb;
	poolid_t pr_poolid;
	zoneid_t pr_zoneid;
	id_t pr_contract;
	uintptr_t pr_argv;	/* where the process has its arguments and environment, as text */
	uintptr_t pr_envp;
	string pr_fname;	/* 15 bytes at most */
	string pr_psargs;	/* of another process than the one that runs: pr_fname */
} psinfo_t;

translator psinfo_t < struct task_struct *T > {
	pr_nlwp = T->signal->nr_threads;
	pr_pid = _task_pid((uintptr_t)T);
	pr_ppid = _task_pid((uintptr_t)T->real_parent);
	pr_pgid = _task_pgrp((uintptr_t)T);
	pr_sid = _task_sid((uintptr_t)T);
	pr_uid = _task_uid((uintptr_t)T);
	pr_euid = _task_euid((uintptr_t)T);
	pr_gid = _task_gid((uintptr_t)T);
	pr_egid = _task_egid((uintptr_t)T);
	pr_addr = (uintptr_t)T;
	pr_ttydev = T->signal->tty ? T->signal->tty : (struct tty_struct *)-1;
	pr_wstat = 0;
	pr_dmodel = PR_MODEL_LP64;
	pr_taskid = 0;
	pr_projid = 0;
	pr_nzomb = 0;
	pr_poolid = 0;
	pr_zoneid = 0;
	pr_contract = 0;
	pr_argv = T->mm ? T->mm->arg_start : 0;
	pr_envp = T->mm ? T->mm->env_start : 0;
	pr_fname = stringof(T->group_leader->comm);
	pr_psargs = T->group_leader == curthread->group_leader ? execargs : stringof(T->group_leader->comm);
};

inline int PR_STOPPED = 0x1;
inline int PR_ISTOP = 0x2;
inline int PR_DSTOP = 0x4;
inline int PR_IDLE = 0x10000000;

enum { SSLEEP = 1, SRUN = 2, SZOMB = 3, SSTOP = 4, SIDL = 5, SONPROC = 6, SWAIT = 7 };

translator lwpsinfo_t < struct task_struct *T > {
	pr_lwpid = _task_tid((uintptr_t)T);
	pr_flag = T->__state & 4 ? PR_STOPPED : 0;
	pr_addr = (uintptr_t)T;
	pr_wchan = 0;
	pr_stype = 0;
	pr_state = T->exit_state ? SZOMB : T->__state & 0xc ? SSTOP : T->__state & 3 ? SSLEEP :
		   T == curthread ? SONPROC : SRUN;
	pr_sname = T->exit_state ? 'Z' : T->__state & 0xc ? 'T' : T->__state & 3 ? 'S' : T == curthread ? 'O' : 'R';
	pr_pri = T->prio;
	pr_nice = T->static_prio - 120;
	pr_onpro = T->thread_info.cpu;
	pr_name = stringof(T->comm);
};

inline psinfo_t *curpsinfo = xlate <psinfo_t *> (curthread);
inline lwpsinfo_t *curlwpsinfo = xlate <lwpsinfo_t *> (curthread);
