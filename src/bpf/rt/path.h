/*
 * Paths of files, from the kernel's own structures: what generated code (gen_path.c) and the runtime function share.
 */
#ifndef DTAP_BPF_RT_PATH_H
#define DTAP_BPF_RT_PATH_H

#include "abi/record.h"

enum { PATH_PARTS = 128 };	/* names in a path at most */

struct path_work {
	/* What is given: where the way up begins, a struct vfsmount and a struct dentry, */
	abi_u64 mnt, dentry;
	/* and where what lies: in struct dentry, */
	abi_u64 parent, name;
	/* in struct vfsmount; and in struct mount, of which that is a part. */
	abi_u64 mnt_root, mount_mnt, mount_parent, mountpoint;
	/* The addresses of the names, the last one first; bytes of the path so far. */
	abi_u64 n, pos;
	abi_u64 names[PATH_PARTS];
};

#endif
