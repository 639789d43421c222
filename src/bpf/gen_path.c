/*
 * Paths of files: cwd, root, d_path().  They begin at the root of all mounts, not at the process's.
 */
#include "bpf/gen.h"

#include <stddef.h>

#include "bpf/rt/path.h"

/* The offset of the work area's @FIELD in the scratch slot. */
#define WORK(FIELD) (g->priv->work_off + (uint32_t)offsetof(struct path_work, FIELD))

/* WORK(mnt) or WORK(dentry), at @work, = the word at @off in the struct path that FRAME_TMP2 points to. */
static void begin_at(struct gen *g, uint32_t work, uint32_t off)
{
	asm_ld(&g->as, BPF_DW, R1, R10, FRAME_TMP2);
	gen_follow(g, off);
	gen_scratch(g, R5, work);
	asm_st(&g->as, BPF_DW, R5, 0, R1);
}

static void put_offset(struct gen *g, uint32_t work, uint32_t off)
{
	gen_scratch(g, R5, work);
	asm_sti(&g->as, BPF_DW, R5, 0, (int32_t)off);
}

/* Put the path of that struct path at @to.  R0 = its bytes, with the NUL. */
static void walk(struct gen *g, struct dest to)
{
	const struct ebpf_paths *p = g->env->paths;

	begin_at(g, WORK(mnt), p->path_mnt);
	begin_at(g, WORK(dentry), p->path_dentry);
	put_offset(g, WORK(parent), p->parent);
	put_offset(g, WORK(name), p->name);
	put_offset(g, WORK(mnt_root), p->mnt_root);
	put_offset(g, WORK(mount_mnt), p->mount_mnt);
	put_offset(g, WORK(mount_parent), p->mount_parent);
	put_offset(g, WORK(mountpoint), p->mountpoint);
	gen_dest(g, R1, to);
	gen_scratch(g, R2, g->priv->work_off);
	asm_rt(&g->as, RT_PATH);
}

/* The process's directory at @off in struct fs_struct; "" for an exiting thread, which has released it. */
static void directory(struct gen *g, uint32_t off, struct dest to, uint32_t done)
{
	struct assembler *as = &g->as;
	uint32_t has = asm_label(as);

	gen_current_task(g);
	asm_mov(as, R1, R0);
	gen_follow(g, g->env->paths->fs);
	asm_ji(as, BPF_JNE, R1, 0, has);
	gen_dest(g, R1, to);
	asm_sti(as, BPF_B, R1, 0, 0);
	asm_imm(as, R0, 1);
	asm_ja(as, done);
	asm_bind(as, has);
	asm_alui(as, BPF_ADD, R1, (int32_t)off);
	asm_st(as, BPF_DW, R10, FRAME_TMP2, R1);
	walk(g, to);
}

/* A fault with the address at FRAME_TMP2 unless R0 is a length. */
static void check_length(struct gen *g)
{
	uint32_t bad = gen_fault(g, ABI_FAULT_BADADDR, FRAME_TMP2);

	asm_ji(&g->as, BPF_JSLT, R0, 1, bad);
	asm_ji(&g->as, BPF_JGT, R0, (int32_t)g->prog->strsize, bad);
}

void gen_directory(struct gen *g, bool root, struct dest to)
{
	const struct ebpf_paths *p = g->env->paths;
	struct assembler *as = &g->as;
	uint32_t done = asm_label(as);

	asm_sti(as, BPF_DW, R10, FRAME_TMP2, 0);
	if (g->env->user_space) {
		gen_dest(g, R1, to);
		asm_imm(as, R2, g->prog->strsize);
		asm_imm(as, R3, root);
		asm_helper(as, ABI_HELPER_PATH);
	} else if (p && p->fs) {
		directory(g, root ? p->root : p->pwd, to, done);
	} else {
		gen_refuse(g, "cwd and root: the kernel does not say where it keeps a process's directories");
		return;
	}
	check_length(g);
	asm_bind(as, done);
}

void gen_path(struct gen *g, const struct ir_insn *i)
{
	const struct ebpf_paths *p = g->env->paths;

	if (!p || !p->fs) {
		gen_refuse(g, "d_path(): the kernel does not say what a path consists of");
		return;
	}
	gen_load(g, R1, i->args[0]);
	asm_st(&g->as, BPF_DW, R10, FRAME_TMP2, R1);
	walk(g, gen_str_dst(g, i));
	check_length(g);
}
