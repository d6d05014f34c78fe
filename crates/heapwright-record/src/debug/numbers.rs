//! The enums of a debug record. Their numbers are never used again. Number 0 is always "unknown":
//! the writer did not know the value, or only a newer version knows it.

use super::wire::{Cursor, Field, Sink};

/// Returns the ends of adjacent words with these lengths. A word is a range of one text: a table of
/// addresses would cost each process a relocation for each word.
const fn ends<const N: usize>(lengths: [usize; N]) -> [u16; N] {
    let (mut ends, mut at, mut end) = ([0; N], 0, 0);
    while at < N {
        end += lengths[at];
        assert!(end <= u16::MAX as usize, "the words are too long for their ends");
        ends[at] = end as u16;
        at += 1;
    }
    ends
}

macro_rules! numbers {
    ($(
        $(#[$doc:meta])*
        $name:ident: $type:ident as $from:ident {
            $( $(#[$variant_doc:meta])* $variant:ident = $number:literal $word:literal, )*
        }
    )*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
            #[repr($type)]
            #[non_exhaustive]
            pub enum $name {
                /// Not known to the writer or to this reader.
                #[default]
                Unknown = 0,
                $( $(#[$variant_doc])* $variant = $number, )*
            }

            impl $name {
                /// All values, in the order of their numbers.
                pub const ALL: &'static [Self] = &[Self::Unknown, $(Self::$variant,)*];

                /// Returns the value with this number.
                #[must_use]
                pub const fn $from(number: $type) -> Self {
                    match number {
                        $( $number => Self::$variant, )*
                        _ => Self::Unknown,
                    }
                }

                /// Returns the word for this value in texts and in JSON.
                #[must_use]
                #[inline(never)]
                pub const fn word(self) -> &'static str {
                    const WORDS: &str = concat!("unknown", $($word),*);
                    const ENDS: [u16; $name::ALL.len()] =
                        ends(["unknown".len(), $($word.len()),*]);
                    let mut at = 0;
                    while Self::ALL[at] as $type != self as $type {
                        at += 1;
                    }
                    let start = if at == 0 { 0 } else { ENDS[at - 1] };
                    WORDS.split_at(ENDS[at] as usize).0.split_at(start as usize).1
                }
            }

            impl<'a> Field<'a> for $name {
                fn put(&self, sink: &mut Sink<'_>) {
                    (*self as $type).put(sink);
                }
                fn take(cursor: &mut Cursor<'a>) -> Self {
                    Self::$from($type::take(cursor))
                }
            }
        )*
    };
}

numbers! {
    /// The kind of mistake.
    FindingKind: u16 as from_u16 {
        /// A free block was freed.
        DoubleFree = 1 "double-free",
        /// A pointer to no block was freed.
        InvalidFree = 2 "invalid-free",
        /// A pointer into a block, and not to its start, was freed.
        InteriorFree = 3 "interior-free",
        /// A block was freed with another size than at its allocation.
        SizeMismatch = 4 "size-mismatch",
        /// A block was freed with another alignment than at its allocation.
        AlignmentMismatch = 5 "alignment-mismatch",
        /// A block was freed by the wrong function, such as `new[]` by `free`.
        AllocatorMismatch = 6 "allocator-mismatch",
        /// An access behind the end of a block.
        Overflow = 7 "buffer-overflow",
        /// An access before the start of a block.
        Underflow = 8 "buffer-underflow",
        /// A free block was found changed.
        WriteAfterFree = 9 "write-after-free",
        /// A free block was accessed, and the access was caught.
        UseAfterFree = 10 "use-after-free",
        /// realloc was given a pointer to no block.
        InvalidRealloc = 11 "invalid-realloc",
        /// realloc was given a free block.
        ReallocAfterFree = 12 "realloc-after-free",
        /// A block was never freed, and nothing leads to it.
        Leak = 13 "leak",
        /// The program's behaviour depends on uninitialised bytes of a block.
        Uninitialised = 14 "uninitialised-value",
        /// The program accessed bytes of a block that it had poisoned.
        UseAfterPoison = 15 "use-after-poison",
        /// A function's limit lies beyond a block's end, but it wrote only into the block.
        MayOverflow = 16 "may-overflow",
    }

    /// The call or the occasion that found the mistake.
    Call: u8 as from_u8 {
        /// `malloc`.
        Malloc = 1 "malloc",
        /// `calloc`.
        Calloc = 2 "calloc",
        /// `realloc`.
        Realloc = 3 "realloc",
        /// `free`.
        Free = 4 "free",
        /// `free_sized` and `free_aligned_sized`.
        FreeSized = 5 "free_sized",
        /// C++'s `operator new`.
        New = 6 "new",
        /// C++'s `operator new[]`.
        NewArray = 7 "new[]",
        /// C++'s `operator delete`.
        Delete = 8 "delete",
        /// C++'s `operator delete[]`.
        DeleteArray = 9 "delete[]",
        /// `malloc_usable_size`.
        UsableSize = 10 "malloc_usable_size",
        /// Rust's `dealloc`.
        RustDealloc = 11 "dealloc",
        /// Rust's `realloc`.
        RustRealloc = 12 "Rust's realloc",
        /// `hw_heap_free`.
        HeapFree = 13 "hw_heap_free",
        /// An access of the program, caught by a guard.
        Access = 14 "access",
        /// A check of all blocks.
        Sweep = 15 "sweep",
        /// The check at the process's end.
        Exit = 16 "exit",
        /// The check of a freed block before its memory is used again.
        Retire = 17 "retire",
        /// A function of the C library that would access memory outside a block.
        Function = 18 "function",
        /// `hw_pool_free`.
        PoolFree = 19 "hw_pool_free",
        /// `hw_arena_free`.
        ArenaFree = 20 "hw_arena_free",
    }

    /// The function that allocated a block, or its kind.
    Origin: u8 as from_u8 {
        /// `malloc`, and `realloc` of a null pointer; in older records `calloc` and `realloc`, too.
        Malloc = 1 "malloc",
        /// `aligned_alloc`, `memalign` and similar; in older records `posix_memalign`, too.
        Aligned = 2 "aligned_alloc",
        /// C++'s `operator new`.
        New = 3 "new",
        /// C++'s `operator new[]`.
        NewArray = 4 "new[]",
        /// Rust's global allocator.
        Rust = 5 "Rust's allocator",
        /// `calloc`.
        Calloc = 6 "calloc",
        /// `realloc` of a block.
        Realloc = 7 "realloc",
        /// `posix_memalign`.
        PosixMemalign = 8 "posix_memalign",
        /// C++'s `operator new` with an alignment.
        AlignedNew = 9 "aligned new",
        /// C++'s `operator new[]` with an alignment.
        AlignedNewArray = 10 "aligned new[]",
        /// `hw_pool_alloc`.
        Pool = 11 "hw_pool_alloc",
        /// `hw_arena_alloc`.
        Arena = 12 "hw_arena_alloc",
        /// `hw_heap_alloc`.
        Heap = 13 "hw_heap_alloc",
    }

    /// The memory that a pointer leads to.
    Region: u8 as from_u8 {
        /// A block of the debug allocator, or the space between blocks.
        Block = 1 "block",
        /// A thread's stack.
        Stack = 2 "stack",
        /// The data of the program or of a library.
        Globals = 3 "globals",
        /// Code.
        Code = 4 "code",
        /// The C library's heap.
        OtherHeap = 5 "other-heap",
        /// A first-class heap.
        FirstClassHeap = 6 "first-class-heap",
        /// A pool.
        Pool = 7 "pool",
        /// An arena.
        Arena = 8 "arena",
        /// Nothing is mapped there.
        Nothing = 9 "nothing",
        /// Memory that the program mapped.
        Mapping = 10 "mapping",
        /// heapwright's own records.
        Metadata = 11 "metadata",
    }

    /// The kind of access.
    Access: u8 as from_u8 {
        /// The access read.
        Read = 1 "read",
        /// The access wrote.
        Write = 2 "write",
    }

    /// A function of the C library that was given an address and a length, or a string.
    Function: u16 as from_u16 {
        /// `memcpy`.
        Memcpy = 1 "memcpy",
        /// `memmove`.
        Memmove = 2 "memmove",
        /// `mempcpy`.
        Mempcpy = 3 "mempcpy",
        /// `memset`.
        Memset = 4 "memset",
        /// `memccpy`.
        Memccpy = 5 "memccpy",
        /// `bcopy`.
        Bcopy = 6 "bcopy",
        /// `bzero`.
        Bzero = 7 "bzero",
        /// `explicit_bzero`.
        ExplicitBzero = 8 "explicit_bzero",
        /// `strcpy`.
        Strcpy = 9 "strcpy",
        /// `stpcpy`.
        Stpcpy = 10 "stpcpy",
        /// `strcat`.
        Strcat = 11 "strcat",
        /// `strncpy`.
        Strncpy = 12 "strncpy",
        /// `stpncpy`.
        Stpncpy = 13 "stpncpy",
        /// `strncat`.
        Strncat = 14 "strncat",
        /// `strlcpy`.
        Strlcpy = 15 "strlcpy",
        /// `strlcat`.
        Strlcat = 16 "strlcat",
        /// `wmemcpy`.
        Wmemcpy = 17 "wmemcpy",
        /// `wmemmove`.
        Wmemmove = 18 "wmemmove",
        /// `wmempcpy`.
        Wmempcpy = 19 "wmempcpy",
        /// `wmemset`.
        Wmemset = 20 "wmemset",
        /// `wcscpy`.
        Wcscpy = 21 "wcscpy",
        /// `wcpcpy`.
        Wcpcpy = 22 "wcpcpy",
        /// `wcscat`.
        Wcscat = 23 "wcscat",
        /// `wcsncpy`.
        Wcsncpy = 24 "wcsncpy",
        /// `wcpncpy`.
        Wcpncpy = 25 "wcpncpy",
        /// `wcsncat`.
        Wcsncat = 26 "wcsncat",
        /// `vsprintf`.
        Vsprintf = 27 "vsprintf",
        /// `vsnprintf`.
        Vsnprintf = 28 "vsnprintf",
        /// `vswprintf`.
        Vswprintf = 29 "vswprintf",
        /// `sprintf`.
        Sprintf = 30 "sprintf",
        /// `snprintf`.
        Snprintf = 31 "snprintf",
        /// `swprintf`.
        Swprintf = 32 "swprintf",
        /// `read`.
        Read = 33 "read",
        /// `pread`.
        Pread = 34 "pread",
        /// `pread64`.
        Pread64 = 35 "pread64",
        /// `recv`.
        Recv = 36 "recv",
        /// `recvfrom`.
        Recvfrom = 37 "recvfrom",
        /// `fread`.
        Fread = 38 "fread",
        /// `fread_unlocked`.
        FreadUnlocked = 39 "fread_unlocked",
        /// `fgets`.
        Fgets = 40 "fgets",
        /// `fgets_unlocked`.
        FgetsUnlocked = 41 "fgets_unlocked",
        /// `fgetws`.
        Fgetws = 42 "fgetws",
        /// `gets`.
        Gets = 43 "gets",
        /// `readlink`.
        Readlink = 44 "readlink",
        /// `readlinkat`.
        Readlinkat = 45 "readlinkat",
        /// `getcwd`.
        Getcwd = 46 "getcwd",
        /// `memcmp`.
        Memcmp = 47 "memcmp",
        /// `bcmp`.
        Bcmp = 48 "bcmp",
        /// `memchr`.
        Memchr = 49 "memchr",
        /// `memrchr`.
        Memrchr = 50 "memrchr",
        /// `rawmemchr`.
        Rawmemchr = 51 "rawmemchr",
        /// `memmem`.
        Memmem = 52 "memmem",
        /// `wmemcmp`.
        Wmemcmp = 53 "wmemcmp",
        /// `wmemchr`.
        Wmemchr = 54 "wmemchr",
        /// `strlen`.
        Strlen = 55 "strlen",
        /// `strnlen`.
        Strnlen = 56 "strnlen",
        /// `strcmp`.
        Strcmp = 57 "strcmp",
        /// `strncmp`.
        Strncmp = 58 "strncmp",
        /// `strcasecmp`.
        Strcasecmp = 59 "strcasecmp",
        /// `strncasecmp`.
        Strncasecmp = 60 "strncasecmp",
        /// `strcoll`.
        Strcoll = 61 "strcoll",
        /// `strxfrm`.
        Strxfrm = 62 "strxfrm",
        /// `strchr`.
        Strchr = 63 "strchr",
        /// `strrchr`.
        Strrchr = 64 "strrchr",
        /// `strchrnul`.
        Strchrnul = 65 "strchrnul",
        /// `index`.
        Index = 66 "index",
        /// `rindex`.
        Rindex = 67 "rindex",
        /// `strstr`.
        Strstr = 68 "strstr",
        /// `strcasestr`.
        Strcasestr = 69 "strcasestr",
        /// `strspn`.
        Strspn = 70 "strspn",
        /// `strcspn`.
        Strcspn = 71 "strcspn",
        /// `strpbrk`.
        Strpbrk = 72 "strpbrk",
        /// `strtok`.
        Strtok = 73 "strtok",
        /// `strtok_r`.
        StrtokR = 74 "strtok_r",
        /// `strsep`.
        Strsep = 75 "strsep",
        /// `strdup`.
        Strdup = 76 "strdup",
        /// `strndup`.
        Strndup = 77 "strndup",
        /// `atoi`.
        Atoi = 78 "atoi",
        /// `atol`.
        Atol = 79 "atol",
        /// `atoll`.
        Atoll = 80 "atoll",
        /// `atof`.
        Atof = 81 "atof",
        /// `strtol`.
        Strtol = 82 "strtol",
        /// `strtoul`.
        Strtoul = 83 "strtoul",
        /// `strtoll`.
        Strtoll = 84 "strtoll",
        /// `strtoull`.
        Strtoull = 85 "strtoull",
        /// `strtod`.
        Strtod = 86 "strtod",
        /// `strtof`.
        Strtof = 87 "strtof",
        /// `wcslen`.
        Wcslen = 88 "wcslen",
        /// `wcsnlen`.
        Wcsnlen = 89 "wcsnlen",
        /// `wcscmp`.
        Wcscmp = 90 "wcscmp",
        /// `wcsncmp`.
        Wcsncmp = 91 "wcsncmp",
        /// `wcschr`.
        Wcschr = 92 "wcschr",
        /// `wcsrchr`.
        Wcsrchr = 93 "wcsrchr",
        /// `wcsstr`.
        Wcsstr = 94 "wcsstr",
        /// `wcsdup`.
        Wcsdup = 95 "wcsdup",
        /// `printf`.
        Printf = 96 "printf",
        /// `fprintf`.
        Fprintf = 97 "fprintf",
        /// `dprintf`.
        Dprintf = 98 "dprintf",
        /// `vprintf`.
        Vprintf = 99 "vprintf",
        /// `vfprintf`.
        Vfprintf = 100 "vfprintf",
        /// `vdprintf`.
        Vdprintf = 101 "vdprintf",
        /// `asprintf`.
        Asprintf = 102 "asprintf",
        /// `vasprintf`.
        Vasprintf = 103 "vasprintf",
        /// `syslog`.
        Syslog = 104 "syslog",
        /// `vsyslog`.
        Vsyslog = 105 "vsyslog",
        /// `puts`.
        Puts = 106 "puts",
        /// `fputs`.
        Fputs = 107 "fputs",
        /// `fputs_unlocked`.
        FputsUnlocked = 108 "fputs_unlocked",
        /// `fputws`.
        Fputws = 109 "fputws",
        /// `sscanf`.
        Sscanf = 110 "sscanf",
        /// `vsscanf`.
        Vsscanf = 111 "vsscanf",
        /// `write`.
        Write = 112 "write",
        /// `pwrite`.
        Pwrite = 113 "pwrite",
        /// `pwrite64`.
        Pwrite64 = 114 "pwrite64",
        /// `send`.
        Send = 115 "send",
        /// `sendto`.
        Sendto = 116 "sendto",
        /// `writev`.
        Writev = 117 "writev",
        /// `pwritev`.
        Pwritev = 118 "pwritev",
        /// `readv`.
        Readv = 119 "readv",
        /// `preadv`.
        Preadv = 120 "preadv",
        /// `sendmsg`.
        Sendmsg = 121 "sendmsg",
        /// `recvmsg`.
        Recvmsg = 122 "recvmsg",
        /// `fwrite`.
        Fwrite = 123 "fwrite",
        /// `fwrite_unlocked`.
        FwriteUnlocked = 124 "fwrite_unlocked",
        /// `getline`.
        Getline = 125 "getline",
        /// `getdelim`.
        Getdelim = 126 "getdelim",
        /// `qsort`.
        Qsort = 127 "qsort",
        /// `qsort_r`.
        QsortR = 128 "qsort_r",
        /// `bsearch`.
        Bsearch = 129 "bsearch",
        /// `open`.
        Open = 130 "open",
        /// `openat`.
        Openat = 131 "openat",
        /// `creat`.
        Creat = 132 "creat",
        /// `access`.
        Access = 133 "access",
        /// `faccessat`.
        Faccessat = 134 "faccessat",
        /// `unlink`.
        Unlink = 135 "unlink",
        /// `unlinkat`.
        Unlinkat = 136 "unlinkat",
        /// `rmdir`.
        Rmdir = 137 "rmdir",
        /// `mkdir`.
        Mkdir = 138 "mkdir",
        /// `mkdirat`.
        Mkdirat = 139 "mkdirat",
        /// `mknod`.
        Mknod = 140 "mknod",
        /// `mkfifo`.
        Mkfifo = 141 "mkfifo",
        /// `rename`.
        Rename = 142 "rename",
        /// `renameat`.
        Renameat = 143 "renameat",
        /// `renameat2`.
        Renameat2 = 144 "renameat2",
        /// `link`.
        Link = 145 "link",
        /// `linkat`.
        Linkat = 146 "linkat",
        /// `symlink`.
        Symlink = 147 "symlink",
        /// `symlinkat`.
        Symlinkat = 148 "symlinkat",
        /// `chdir`.
        Chdir = 149 "chdir",
        /// `chmod`.
        Chmod = 150 "chmod",
        /// `fchmodat`.
        Fchmodat = 151 "fchmodat",
        /// `chown`.
        Chown = 152 "chown",
        /// `lchown`.
        Lchown = 153 "lchown",
        /// `fchownat`.
        Fchownat = 154 "fchownat",
        /// `truncate`.
        Truncate = 155 "truncate",
        /// `utime`.
        Utime = 156 "utime",
        /// `utimes`.
        Utimes = 157 "utimes",
        /// `utimensat`.
        Utimensat = 158 "utimensat",
        /// `stat`.
        Stat = 159 "stat",
        /// `lstat`.
        Lstat = 160 "lstat",
        /// `fstat`.
        Fstat = 161 "fstat",
        /// `fstatat`.
        Fstatat = 162 "fstatat",
        /// `statx`.
        Statx = 163 "statx",
        /// `statfs`.
        Statfs = 164 "statfs",
        /// `fstatfs`.
        Fstatfs = 165 "fstatfs",
        /// `statvfs`.
        Statvfs = 166 "statvfs",
        /// `mount`.
        Mount = 167 "mount",
        /// `umount2`.
        Umount2 = 168 "umount2",
        /// `remove`.
        Remove = 169 "remove",
        /// `opendir`.
        Opendir = 170 "opendir",
        /// `fopen`.
        Fopen = 171 "fopen",
        /// `freopen`.
        Freopen = 172 "freopen",
        /// `system`.
        System = 173 "system",
        /// `popen`.
        Popen = 174 "popen",
        /// `realpath`.
        Realpath = 175 "realpath",
        /// `mkstemp`.
        Mkstemp = 176 "mkstemp",
        /// `mkdtemp`.
        Mkdtemp = 177 "mkdtemp",
        /// `getxattr`.
        Getxattr = 178 "getxattr",
        /// `lgetxattr`.
        Lgetxattr = 179 "lgetxattr",
        /// `fgetxattr`.
        Fgetxattr = 180 "fgetxattr",
        /// `setxattr`.
        Setxattr = 181 "setxattr",
        /// `lsetxattr`.
        Lsetxattr = 182 "lsetxattr",
        /// `fsetxattr`.
        Fsetxattr = 183 "fsetxattr",
        /// `listxattr`.
        Listxattr = 184 "listxattr",
        /// `flistxattr`.
        Flistxattr = 185 "flistxattr",
        /// `removexattr`.
        Removexattr = 186 "removexattr",
        /// `execve`.
        Execve = 187 "execve",
        /// `execv`.
        Execv = 188 "execv",
        /// `execvp`.
        Execvp = 189 "execvp",
        /// `execvpe`.
        Execvpe = 190 "execvpe",
        /// `execveat`.
        Execveat = 191 "execveat",
        /// `posix_spawn`.
        PosixSpawn = 192 "posix_spawn",
        /// `posix_spawnp`.
        PosixSpawnp = 193 "posix_spawnp",
        /// `getdents64`.
        Getdents64 = 194 "getdents64",
        /// `fcntl`.
        Fcntl = 195 "fcntl",
        /// `ioctl`.
        Ioctl = 196 "ioctl",
        /// `inotify_add_watch`.
        InotifyAddWatch = 197 "inotify_add_watch",
        /// `pipe`.
        Pipe = 198 "pipe",
        /// `pipe2`.
        Pipe2 = 199 "pipe2",
        /// `socketpair`.
        Socketpair = 200 "socketpair",
        /// `memfd_create`.
        MemfdCreate = 201 "memfd_create",
        /// `preadv2`.
        Preadv2 = 202 "preadv2",
        /// `pwritev2`.
        Pwritev2 = 203 "pwritev2",
        /// `process_vm_readv`.
        ProcessVmReadv = 204 "process_vm_readv",
        /// `process_vm_writev`.
        ProcessVmWritev = 205 "process_vm_writev",
        /// `recvmmsg`.
        Recvmmsg = 206 "recvmmsg",
        /// `sendmmsg`.
        Sendmmsg = 207 "sendmmsg",
        /// `sendfile`.
        Sendfile = 208 "sendfile",
        /// `splice`.
        Splice = 209 "splice",
        /// `copy_file_range`.
        CopyFileRange = 210 "copy_file_range",
        /// `accept`.
        Accept = 211 "accept",
        /// `accept4`.
        Accept4 = 212 "accept4",
        /// `bind`.
        Bind = 213 "bind",
        /// `connect`.
        Connect = 214 "connect",
        /// `getsockname`.
        Getsockname = 215 "getsockname",
        /// `getpeername`.
        Getpeername = 216 "getpeername",
        /// `getsockopt`.
        Getsockopt = 217 "getsockopt",
        /// `setsockopt`.
        Setsockopt = 218 "setsockopt",
        /// `poll`.
        Poll = 219 "poll",
        /// `ppoll`.
        Ppoll = 220 "ppoll",
        /// `select`.
        Select = 221 "select",
        /// `pselect`.
        Pselect = 222 "pselect",
        /// `epoll_ctl`.
        EpollCtl = 223 "epoll_ctl",
        /// `epoll_wait`.
        EpollWait = 224 "epoll_wait",
        /// `epoll_pwait`.
        EpollPwait = 225 "epoll_pwait",
        /// `clock_gettime`.
        ClockGettime = 226 "clock_gettime",
        /// `clock_nanosleep`.
        ClockNanosleep = 227 "clock_nanosleep",
        /// `nanosleep`.
        Nanosleep = 228 "nanosleep",
        /// `gettimeofday`.
        Gettimeofday = 229 "gettimeofday",
        /// `time`.
        Time = 230 "time",
        /// `timer_settime`.
        TimerSettime = 231 "timer_settime",
        /// `timer_gettime`.
        TimerGettime = 232 "timer_gettime",
        /// `setitimer`.
        Setitimer = 233 "setitimer",
        /// `getitimer`.
        Getitimer = 234 "getitimer",
        /// `timerfd_settime`.
        TimerfdSettime = 235 "timerfd_settime",
        /// `timerfd_gettime`.
        TimerfdGettime = 236 "timerfd_gettime",
        /// `sigprocmask`.
        Sigprocmask = 237 "sigprocmask",
        /// `pthread_sigmask`.
        PthreadSigmask = 238 "pthread_sigmask",
        /// `sigtimedwait`.
        Sigtimedwait = 239 "sigtimedwait",
        /// `uname`.
        Uname = 240 "uname",
        /// `gethostname`.
        Gethostname = 241 "gethostname",
        /// `sysinfo`.
        Sysinfo = 242 "sysinfo",
        /// `getrlimit`.
        Getrlimit = 243 "getrlimit",
        /// `getrusage`.
        Getrusage = 244 "getrusage",
        /// `wait`.
        Wait = 245 "wait",
        /// `waitpid`.
        Waitpid = 246 "waitpid",
        /// `wait4`.
        Wait4 = 247 "wait4",
        /// `getgroups`.
        Getgroups = 248 "getgroups",
        /// `getrandom`.
        Getrandom = 249 "getrandom",
        /// `sched_getaffinity`.
        SchedGetaffinity = 250 "sched_getaffinity",
        /// `sched_setaffinity`.
        SchedSetaffinity = 251 "sched_setaffinity",
        /// `syscall`.
        Syscall = 252 "syscall",
        /// `fstatvfs`.
        Fstatvfs = 253 "fstatvfs",
        /// `prlimit`, and `setrlimit`, which calls it.
        Prlimit = 254 "prlimit",
        /// `acct`.
        Acct = 255 "acct",
        /// `adjtime`.
        Adjtime = 256 "adjtime",
        /// `adjtimex`.
        Adjtimex = 257 "adjtimex",
        /// `chroot`.
        Chroot = 258 "chroot",
        /// `clock_adjtime`.
        ClockAdjtime = 259 "clock_adjtime",
        /// `clock_getres`.
        ClockGetres = 260 "clock_getres",
        /// `clock_settime`.
        ClockSettime = 261 "clock_settime",
        /// `eaccess`.
        Eaccess = 262 "eaccess",
        /// `epoll_pwait2`.
        EpollPwait2 = 263 "epoll_pwait2",
        /// `euidaccess`.
        Euidaccess = 264 "euidaccess",
        /// `execl`.
        Execl = 265 "execl",
        /// `execle`.
        Execle = 266 "execle",
        /// `execlp`.
        Execlp = 267 "execlp",
        /// `fexecve`.
        Fexecve = 268 "fexecve",
        /// `fremovexattr`.
        Fremovexattr = 269 "fremovexattr",
        /// `futimens`.
        Futimens = 270 "futimens",
        /// `futimes`.
        Futimes = 271 "futimes",
        /// `futimesat`.
        Futimesat = 272 "futimesat",
        /// `getdomainname`.
        Getdomainname = 273 "getdomainname",
        /// `getentropy`.
        Getentropy = 274 "getentropy",
        /// `getresgid`.
        Getresgid = 275 "getresgid",
        /// `getresuid`.
        Getresuid = 276 "getresuid",
        /// `klogctl`.
        Klogctl = 277 "klogctl",
        /// `lchmod`.
        Lchmod = 278 "lchmod",
        /// `llistxattr`.
        Llistxattr = 279 "llistxattr",
        /// `lremovexattr`.
        Lremovexattr = 280 "lremovexattr",
        /// `lutimes`.
        Lutimes = 281 "lutimes",
        /// `mincore`.
        Mincore = 282 "mincore",
        /// `mkfifoat`.
        Mkfifoat = 283 "mkfifoat",
        /// `mknodat`.
        Mknodat = 284 "mknodat",
        /// `mkostemp`.
        Mkostemp = 285 "mkostemp",
        /// `mkstemps`.
        Mkstemps = 286 "mkstemps",
        /// `mq_open`.
        MqOpen = 287 "mq_open",
        /// `mq_receive`.
        MqReceive = 288 "mq_receive",
        /// `mq_send`.
        MqSend = 289 "mq_send",
        /// `mq_timedreceive`.
        MqTimedreceive = 290 "mq_timedreceive",
        /// `mq_timedsend`.
        MqTimedsend = 291 "mq_timedsend",
        /// `mq_unlink`.
        MqUnlink = 292 "mq_unlink",
        /// `msgctl`.
        Msgctl = 293 "msgctl",
        /// `msgrcv`.
        Msgrcv = 294 "msgrcv",
        /// `msgsnd`.
        Msgsnd = 295 "msgsnd",
        /// `name_to_handle_at`.
        NameToHandleAt = 296 "name_to_handle_at",
        /// `pathconf`.
        Pathconf = 297 "pathconf",
        /// `pthread_getaffinity_np`.
        PthreadGetaffinityNp = 298 "pthread_getaffinity_np",
        /// `pthread_getname_np`.
        PthreadGetnameNp = 299 "pthread_getname_np",
        /// `pthread_setaffinity_np`.
        PthreadSetaffinityNp = 300 "pthread_setaffinity_np",
        /// `pthread_setname_np`.
        PthreadSetnameNp = 301 "pthread_setname_np",
        /// `scandir`.
        Scandir = 302 "scandir",
        /// `sched_getparam`.
        SchedGetparam = 303 "sched_getparam",
        /// `sched_rr_get_interval`.
        SchedRrGetInterval = 304 "sched_rr_get_interval",
        /// `sched_setparam`.
        SchedSetparam = 305 "sched_setparam",
        /// `sched_setscheduler`.
        SchedSetscheduler = 306 "sched_setscheduler",
        /// `semctl`.
        Semctl = 307 "semctl",
        /// `semop`.
        Semop = 308 "semop",
        /// `semtimedop`.
        Semtimedop = 309 "semtimedop",
        /// `setdomainname`.
        Setdomainname = 310 "setdomainname",
        /// `setgroups`.
        Setgroups = 311 "setgroups",
        /// `sethostname`.
        Sethostname = 312 "sethostname",
        /// `settimeofday`.
        Settimeofday = 313 "settimeofday",
        /// `shmctl`.
        Shmctl = 314 "shmctl",
        /// `sigaltstack`.
        Sigaltstack = 315 "sigaltstack",
        /// `signalfd`.
        Signalfd = 316 "signalfd",
        /// `sigpending`.
        Sigpending = 317 "sigpending",
        /// `sigsuspend`.
        Sigsuspend = 318 "sigsuspend",
        /// `sigwait`.
        Sigwait = 319 "sigwait",
        /// `sigwaitinfo`.
        Sigwaitinfo = 320 "sigwaitinfo",
        /// `swapoff`.
        Swapoff = 321 "swapoff",
        /// `swapon`.
        Swapon = 322 "swapon",
        /// `times`.
        Times = 323 "times",
        /// `umount`.
        Umount = 324 "umount",
        /// `vmsplice`.
        Vmsplice = 325 "vmsplice",
        /// `wait3`.
        Wait3 = 326 "wait3",
        /// `waitid`.
        Waitid = 327 "waitid",
    }

    /// The reason for a leak check.
    Occasion: u8 as from_u8 {
        /// The process ends.
        Exit = 1 "exit",
        /// A signal ordered the check.
        Signal = 2 "signal",
        /// The program called for the check.
        Call = 3 "call",
        /// A timer expired. Only live blocks are counted, and no pointer is followed.
        Time = 4 "time",
        /// A heap profile. Live blocks are estimated from samples, and no pointer is followed.
        Profile = 5 "profile",
    }

    /// The way in which pointers lead to a block.
    Reach: u8 as from_u8 {
        /// No pointer leads to it.
        Definite = 1 "definitely-lost",
        /// Only pointers in lost blocks lead to it.
        Indirect = 2 "indirectly-lost",
        /// Only doubtful pointers lead to it: pointers into its middle, or pointers of a thread
        /// that did not report its registers.
        Possible = 3 "possibly-lost",
        /// The program still has a pointer to it, or to a block that leads to it.
        Reachable = 4 "still-reachable",
    }

    /// The root at which a chain of pointers begins.
    Root: u8 as from_u8 {
        /// The data of the program or of a library.
        Globals = 1 "globals",
        /// A thread's stack.
        Stack = 2 "stack",
        /// A thread's registers.
        Registers = 3 "registers",
        /// A thread's own variables.
        ThreadLocal = 4 "thread-local",
        /// Memory that the program mapped.
        Mapping = 5 "mapping",
        /// Memory of another heap, a pool or an arena of heapwright.
        OtherHeap = 6 "other-heap",
    }

    /// The way in which a process ended.
    Ending: u32 as from_u32 {
        /// By `exit`, or by returning from `main`.
        Exit = 1 "exit",
        /// By `abort`, called by heapwright or the program.
        Abort = 2 "abort",
        /// The process became another program (`exec`).
        Exec = 3 "exec",
        /// A forked child that never became another program.
        ForkChild = 4 "fork-child",
        /// By a signal without a handler: [`End::signal`](super::End) names it.
        Signal = 5 "signal",
    }

    /// The kind of blocks of a heap profile.
    Memory: u8 as from_u8 {
        /// Blocks of `malloc` and of first-class heaps.
        Block = 1 "block",
        /// Segments of pools.
        Pool = 2 "pool",
        /// Chunks of arenas.
        Arena = 3 "arena",
        /// Pages of collected heaps.
        Collected = 4 "collected",
    }
}

impl FindingKind {
    /// Returns the first words of a report.
    ///
    /// ```
    /// use heapwright_record::debug::FindingKind;
    /// assert_eq!(FindingKind::DoubleFree.heading(), "double-free");
    /// assert_eq!(FindingKind::from_u16(7).heading(), "buffer-overflow");
    /// ```
    #[must_use]
    pub const fn heading(self) -> &'static str {
        self.word()
    }
}

impl Function {
    /// Returns the value of this name.
    ///
    /// ```
    /// use heapwright_record::debug::Function;
    /// assert_eq!(Function::named("memcpy"), Function::Memcpy);
    /// assert_eq!(Function::named("mem"), Function::Unknown);
    /// ```
    #[must_use]
    pub const fn named(name: &str) -> Self {
        let mut at = 1;
        while at < Self::ALL.len() {
            if is_same(Self::ALL[at].word().as_bytes(), name.as_bytes()) {
                return Self::ALL[at];
            }
            at += 1;
        }
        Self::Unknown
    }
}

/// Returns whether two names are equal, for constants.
const fn is_same(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let mut at = 0;
    while at < one.len() {
        if one[at] != other[at] {
            return false;
        }
        at += 1;
    }
    true
}

impl Occasion {
    /// Returns whether pointers were followed, so that leaks are known, not only live blocks.
    #[must_use]
    pub const fn follows(self) -> bool {
        !matches!(self, Self::Time | Self::Profile)
    }
}
