/*
 * Paths of files, from the kernel's own structures: what generated code (gen_path.c) and the runtime function share.
 */
#ifndef DTAP_BPF_RT_PATH_H
#define DTAP_BPF_RT_PATH_H

#include "abi/record.h"

enum { PATH_PARTS = 128 };	/* names in a path at most */

struct path_work {
	/* Input: where the walk begins, a struct vfsmount and a struct dentry; */
	abi_u64 mnt, dentry;
	/* offsets in struct dentry; */
	abi_u64 parent, name;
	/* in struct vfsmount; and in struct mount, which contains it. */
	abi_u64 mnt_root, mount_mnt, mount_parent, mountpoint;
	/* The addresses of the names, the last one first; bytes of the path so far. */
	abi_u64 n, pos;
	abi_u64 names[PATH_PARTS];
};

#endif
