/*
 * Open files of the process at hand: fds[].
 *
 * Guide: "Variables", fds; "io Provider", "fileinfo_t".
 */
#pragma D depends_on module vmlinux

typedef struct fileinfo {
	string fi_name;		/* "<none>": no such file is open */
	string fi_dirname;	/* its directory, */
	string fi_pathname;	/* and the whole, from the root of all mounts */
	string fi_fs;		/* its file system's kind */
	offset_t fi_offset;
	int fi_oflags;		/* O_ of open(2) */
} fileinfo_t;

translator fileinfo_t < struct file *F > {
	/* The root of a mount has the name of where it is mounted. */
	fi_name = F == NULL ? "<none>" :
		  F->f_path.dentry == F->f_path.mnt->mnt_root ? basename(d_path(&F->f_path)) :
		  stringof((char *)F->f_path.dentry->d_name.name);
	fi_dirname = F == NULL ? "<none>" :
		     F->f_path.dentry == F->f_path.dentry->d_parent && F->f_path.dentry != F->f_path.mnt->mnt_root ?
		     "<unknown>" : dirname(d_path(&F->f_path));
	fi_pathname = F == NULL ? "<none>" : d_path(&F->f_path);
	fi_fs = F == NULL ? "<none>" : stringof(F->f_path.dentry->d_sb->s_type->name);
	fi_offset = F == NULL ? 0 : F->f_pos;
	fi_oflags = F == NULL ? 0 : F->f_flags;
};

inline fileinfo_t fds[int fd] = xlate <fileinfo_t> (fd >= 0 && fd < curthread->files->fdt->max_fds ?
						    curthread->files->fdt->fd[fd] : NULL);

inline int O_RDONLY = 0;
inline int O_WRONLY = 1;
inline int O_RDWR = 2;
inline int O_ACCMODE = 3;
inline int O_CREAT = 0x40;
inline int O_EXCL = 0x80;
inline int O_NOCTTY = 0x100;
inline int O_TRUNC = 0x200;
inline int O_APPEND = 0x400;
inline int O_NONBLOCK = 0x800;
inline int O_DIRECTORY = 0x10000;
inline int O_NOFOLLOW = 0x20000;
inline int O_CLOEXEC = 0x80000;
