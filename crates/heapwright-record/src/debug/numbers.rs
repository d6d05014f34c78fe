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
                $(
                    #[doc = concat!("`", $word, "`.")]
                    $(#[$variant_doc])*
                    $variant = $number,
                )*
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
        /// A block was never freed: nothing leads to it, or its debug heap ended.
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
        Malloc = 1 "malloc",
        Calloc = 2 "calloc",
        Realloc = 3 "realloc",
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
        UsableSize = 10 "malloc_usable_size",
        /// Rust's `dealloc`.
        RustDealloc = 11 "dealloc",
        /// Rust's `realloc`.
        RustRealloc = 12 "Rust's realloc",
        HeapFree = 13 "hw_heap_free",
        /// An access of the program, caught by a guard.
        Access = 14 "access",
        /// A check of all blocks.
        Sweep = 15 "sweep",
        /// The check at the end of the process or of a debug heap.
        Exit = 16 "exit",
        /// The check of a freed block before its memory is used again.
        Retire = 17 "retire",
        /// A function of the C library that would access memory outside a block.
        Function = 18 "function",
        PoolFree = 19 "hw_pool_free",
        ArenaFree = 20 "hw_arena_free",
    }

    /// The function that allocated a block, or its kind.
    Origin: u8 as from_u8 {
        /// `malloc`, and `realloc` of a null pointer.
        Malloc = 1 "malloc",
        /// `aligned_alloc`, `memalign` and similar.
        Aligned = 2 "aligned_alloc",
        /// C++'s `operator new`.
        New = 3 "new",
        /// C++'s `operator new[]`.
        NewArray = 4 "new[]",
        /// Rust's global allocator.
        Rust = 5 "Rust's allocator",
        Calloc = 6 "calloc",
        /// `realloc` of a block.
        Realloc = 7 "realloc",
        PosixMemalign = 8 "posix_memalign",
        /// C++'s `operator new` with an alignment.
        AlignedNew = 9 "aligned new",
        /// C++'s `operator new[]` with an alignment.
        AlignedNewArray = 10 "aligned new[]",
        Pool = 11 "hw_pool_alloc",
        Arena = 12 "hw_arena_alloc",
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
        /// The C library's heap, or a block of another allocator.
        OtherHeap = 5 "other-heap",
        /// A first-class heap.
        FirstClassHeap = 6 "first-class-heap",
        /// A pool.
        Pool = 7 "pool",
        /// An arena.
        Arena = 8 "arena",
        /// Nothing is mapped there, or the heap's memory there is free.
        Nothing = 9 "nothing",
        /// Memory that the program mapped.
        Mapping = 10 "mapping",
        /// heapwright's own records.
        Metadata = 11 "metadata",
        /// A collected heap.
        Collected = 12 "collected-heap",
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
        Memcpy = 1 "memcpy",
        Memmove = 2 "memmove",
        Mempcpy = 3 "mempcpy",
        Memset = 4 "memset",
        Memccpy = 5 "memccpy",
        Bcopy = 6 "bcopy",
        Bzero = 7 "bzero",
        ExplicitBzero = 8 "explicit_bzero",
        Strcpy = 9 "strcpy",
        Stpcpy = 10 "stpcpy",
        Strcat = 11 "strcat",
        Strncpy = 12 "strncpy",
        Stpncpy = 13 "stpncpy",
        Strncat = 14 "strncat",
        Strlcpy = 15 "strlcpy",
        Strlcat = 16 "strlcat",
        Wmemcpy = 17 "wmemcpy",
        Wmemmove = 18 "wmemmove",
        Wmempcpy = 19 "wmempcpy",
        Wmemset = 20 "wmemset",
        Wcscpy = 21 "wcscpy",
        Wcpcpy = 22 "wcpcpy",
        Wcscat = 23 "wcscat",
        Wcsncpy = 24 "wcsncpy",
        Wcpncpy = 25 "wcpncpy",
        Wcsncat = 26 "wcsncat",
        Vsprintf = 27 "vsprintf",
        Vsnprintf = 28 "vsnprintf",
        Vswprintf = 29 "vswprintf",
        Sprintf = 30 "sprintf",
        Snprintf = 31 "snprintf",
        Swprintf = 32 "swprintf",
        Read = 33 "read",
        Pread = 34 "pread",
        Pread64 = 35 "pread64",
        Recv = 36 "recv",
        Recvfrom = 37 "recvfrom",
        Fread = 38 "fread",
        FreadUnlocked = 39 "fread_unlocked",
        Fgets = 40 "fgets",
        FgetsUnlocked = 41 "fgets_unlocked",
        Fgetws = 42 "fgetws",
        Gets = 43 "gets",
        Readlink = 44 "readlink",
        Readlinkat = 45 "readlinkat",
        Getcwd = 46 "getcwd",
        Memcmp = 47 "memcmp",
        Bcmp = 48 "bcmp",
        Memchr = 49 "memchr",
        Memrchr = 50 "memrchr",
        Rawmemchr = 51 "rawmemchr",
        Memmem = 52 "memmem",
        Wmemcmp = 53 "wmemcmp",
        Wmemchr = 54 "wmemchr",
        Strlen = 55 "strlen",
        Strnlen = 56 "strnlen",
        Strcmp = 57 "strcmp",
        Strncmp = 58 "strncmp",
        Strcasecmp = 59 "strcasecmp",
        Strncasecmp = 60 "strncasecmp",
        Strcoll = 61 "strcoll",
        Strxfrm = 62 "strxfrm",
        Strchr = 63 "strchr",
        Strrchr = 64 "strrchr",
        Strchrnul = 65 "strchrnul",
        Index = 66 "index",
        Rindex = 67 "rindex",
        Strstr = 68 "strstr",
        Strcasestr = 69 "strcasestr",
        Strspn = 70 "strspn",
        Strcspn = 71 "strcspn",
        Strpbrk = 72 "strpbrk",
        Strtok = 73 "strtok",
        StrtokR = 74 "strtok_r",
        Strsep = 75 "strsep",
        Strdup = 76 "strdup",
        Strndup = 77 "strndup",
        Atoi = 78 "atoi",
        Atol = 79 "atol",
        Atoll = 80 "atoll",
        Atof = 81 "atof",
        Strtol = 82 "strtol",
        Strtoul = 83 "strtoul",
        Strtoll = 84 "strtoll",
        Strtoull = 85 "strtoull",
        Strtod = 86 "strtod",
        Strtof = 87 "strtof",
        Wcslen = 88 "wcslen",
        Wcsnlen = 89 "wcsnlen",
        Wcscmp = 90 "wcscmp",
        Wcsncmp = 91 "wcsncmp",
        Wcschr = 92 "wcschr",
        Wcsrchr = 93 "wcsrchr",
        Wcsstr = 94 "wcsstr",
        Wcsdup = 95 "wcsdup",
        Printf = 96 "printf",
        Fprintf = 97 "fprintf",
        Dprintf = 98 "dprintf",
        Vprintf = 99 "vprintf",
        Vfprintf = 100 "vfprintf",
        Vdprintf = 101 "vdprintf",
        Asprintf = 102 "asprintf",
        Vasprintf = 103 "vasprintf",
        Syslog = 104 "syslog",
        Vsyslog = 105 "vsyslog",
        Puts = 106 "puts",
        Fputs = 107 "fputs",
        FputsUnlocked = 108 "fputs_unlocked",
        Fputws = 109 "fputws",
        Sscanf = 110 "sscanf",
        Vsscanf = 111 "vsscanf",
        Write = 112 "write",
        Pwrite = 113 "pwrite",
        Pwrite64 = 114 "pwrite64",
        Send = 115 "send",
        Sendto = 116 "sendto",
        Writev = 117 "writev",
        Pwritev = 118 "pwritev",
        Readv = 119 "readv",
        Preadv = 120 "preadv",
        Sendmsg = 121 "sendmsg",
        Recvmsg = 122 "recvmsg",
        Fwrite = 123 "fwrite",
        FwriteUnlocked = 124 "fwrite_unlocked",
        Getline = 125 "getline",
        Getdelim = 126 "getdelim",
        Qsort = 127 "qsort",
        QsortR = 128 "qsort_r",
        Bsearch = 129 "bsearch",
        Open = 130 "open",
        Openat = 131 "openat",
        Creat = 132 "creat",
        Access = 133 "access",
        Faccessat = 134 "faccessat",
        Unlink = 135 "unlink",
        Unlinkat = 136 "unlinkat",
        Rmdir = 137 "rmdir",
        Mkdir = 138 "mkdir",
        Mkdirat = 139 "mkdirat",
        Mknod = 140 "mknod",
        Mkfifo = 141 "mkfifo",
        Rename = 142 "rename",
        Renameat = 143 "renameat",
        Renameat2 = 144 "renameat2",
        Link = 145 "link",
        Linkat = 146 "linkat",
        Symlink = 147 "symlink",
        Symlinkat = 148 "symlinkat",
        Chdir = 149 "chdir",
        Chmod = 150 "chmod",
        Fchmodat = 151 "fchmodat",
        Chown = 152 "chown",
        Lchown = 153 "lchown",
        Fchownat = 154 "fchownat",
        Truncate = 155 "truncate",
        Utime = 156 "utime",
        Utimes = 157 "utimes",
        Utimensat = 158 "utimensat",
        Stat = 159 "stat",
        Lstat = 160 "lstat",
        Fstat = 161 "fstat",
        Fstatat = 162 "fstatat",
        Statx = 163 "statx",
        Statfs = 164 "statfs",
        Fstatfs = 165 "fstatfs",
        Statvfs = 166 "statvfs",
        Mount = 167 "mount",
        Umount2 = 168 "umount2",
        Remove = 169 "remove",
        Opendir = 170 "opendir",
        Fopen = 171 "fopen",
        Freopen = 172 "freopen",
        System = 173 "system",
        Popen = 174 "popen",
        Realpath = 175 "realpath",
        Mkstemp = 176 "mkstemp",
        Mkdtemp = 177 "mkdtemp",
        Getxattr = 178 "getxattr",
        Lgetxattr = 179 "lgetxattr",
        Fgetxattr = 180 "fgetxattr",
        Setxattr = 181 "setxattr",
        Lsetxattr = 182 "lsetxattr",
        Fsetxattr = 183 "fsetxattr",
        Listxattr = 184 "listxattr",
        Flistxattr = 185 "flistxattr",
        Removexattr = 186 "removexattr",
        Execve = 187 "execve",
        Execv = 188 "execv",
        Execvp = 189 "execvp",
        Execvpe = 190 "execvpe",
        Execveat = 191 "execveat",
        PosixSpawn = 192 "posix_spawn",
        PosixSpawnp = 193 "posix_spawnp",
        Getdents64 = 194 "getdents64",
        Fcntl = 195 "fcntl",
        Ioctl = 196 "ioctl",
        InotifyAddWatch = 197 "inotify_add_watch",
        Pipe = 198 "pipe",
        Pipe2 = 199 "pipe2",
        Socketpair = 200 "socketpair",
        MemfdCreate = 201 "memfd_create",
        Preadv2 = 202 "preadv2",
        Pwritev2 = 203 "pwritev2",
        ProcessVmReadv = 204 "process_vm_readv",
        ProcessVmWritev = 205 "process_vm_writev",
        Recvmmsg = 206 "recvmmsg",
        Sendmmsg = 207 "sendmmsg",
        Sendfile = 208 "sendfile",
        Splice = 209 "splice",
        CopyFileRange = 210 "copy_file_range",
        Accept = 211 "accept",
        Accept4 = 212 "accept4",
        Bind = 213 "bind",
        Connect = 214 "connect",
        Getsockname = 215 "getsockname",
        Getpeername = 216 "getpeername",
        Getsockopt = 217 "getsockopt",
        Setsockopt = 218 "setsockopt",
        Poll = 219 "poll",
        Ppoll = 220 "ppoll",
        Select = 221 "select",
        Pselect = 222 "pselect",
        EpollCtl = 223 "epoll_ctl",
        EpollWait = 224 "epoll_wait",
        EpollPwait = 225 "epoll_pwait",
        ClockGettime = 226 "clock_gettime",
        ClockNanosleep = 227 "clock_nanosleep",
        Nanosleep = 228 "nanosleep",
        Gettimeofday = 229 "gettimeofday",
        Time = 230 "time",
        TimerSettime = 231 "timer_settime",
        TimerGettime = 232 "timer_gettime",
        Setitimer = 233 "setitimer",
        Getitimer = 234 "getitimer",
        TimerfdSettime = 235 "timerfd_settime",
        TimerfdGettime = 236 "timerfd_gettime",
        Sigprocmask = 237 "sigprocmask",
        PthreadSigmask = 238 "pthread_sigmask",
        Sigtimedwait = 239 "sigtimedwait",
        Uname = 240 "uname",
        Gethostname = 241 "gethostname",
        Sysinfo = 242 "sysinfo",
        Getrlimit = 243 "getrlimit",
        Getrusage = 244 "getrusage",
        Wait = 245 "wait",
        Waitpid = 246 "waitpid",
        Wait4 = 247 "wait4",
        Getgroups = 248 "getgroups",
        Getrandom = 249 "getrandom",
        SchedGetaffinity = 250 "sched_getaffinity",
        SchedSetaffinity = 251 "sched_setaffinity",
        Syscall = 252 "syscall",
        Fstatvfs = 253 "fstatvfs",
        /// `prlimit`, and `setrlimit`, which calls it.
        Prlimit = 254 "prlimit",
        Acct = 255 "acct",
        Adjtime = 256 "adjtime",
        Adjtimex = 257 "adjtimex",
        Chroot = 258 "chroot",
        ClockAdjtime = 259 "clock_adjtime",
        ClockGetres = 260 "clock_getres",
        ClockSettime = 261 "clock_settime",
        Eaccess = 262 "eaccess",
        EpollPwait2 = 263 "epoll_pwait2",
        Euidaccess = 264 "euidaccess",
        Execl = 265 "execl",
        Execle = 266 "execle",
        Execlp = 267 "execlp",
        Fexecve = 268 "fexecve",
        Fremovexattr = 269 "fremovexattr",
        Futimens = 270 "futimens",
        Futimes = 271 "futimes",
        Futimesat = 272 "futimesat",
        Getdomainname = 273 "getdomainname",
        Getentropy = 274 "getentropy",
        Getresgid = 275 "getresgid",
        Getresuid = 276 "getresuid",
        Klogctl = 277 "klogctl",
        Lchmod = 278 "lchmod",
        Llistxattr = 279 "llistxattr",
        Lremovexattr = 280 "lremovexattr",
        Lutimes = 281 "lutimes",
        Mincore = 282 "mincore",
        Mkfifoat = 283 "mkfifoat",
        Mknodat = 284 "mknodat",
        Mkostemp = 285 "mkostemp",
        Mkstemps = 286 "mkstemps",
        MqOpen = 287 "mq_open",
        MqReceive = 288 "mq_receive",
        MqSend = 289 "mq_send",
        MqTimedreceive = 290 "mq_timedreceive",
        MqTimedsend = 291 "mq_timedsend",
        MqUnlink = 292 "mq_unlink",
        Msgctl = 293 "msgctl",
        Msgrcv = 294 "msgrcv",
        Msgsnd = 295 "msgsnd",
        NameToHandleAt = 296 "name_to_handle_at",
        Pathconf = 297 "pathconf",
        PthreadGetaffinityNp = 298 "pthread_getaffinity_np",
        PthreadGetnameNp = 299 "pthread_getname_np",
        PthreadSetaffinityNp = 300 "pthread_setaffinity_np",
        PthreadSetnameNp = 301 "pthread_setname_np",
        Scandir = 302 "scandir",
        SchedGetparam = 303 "sched_getparam",
        SchedRrGetInterval = 304 "sched_rr_get_interval",
        SchedSetparam = 305 "sched_setparam",
        SchedSetscheduler = 306 "sched_setscheduler",
        Semctl = 307 "semctl",
        Semop = 308 "semop",
        Semtimedop = 309 "semtimedop",
        Setdomainname = 310 "setdomainname",
        Setgroups = 311 "setgroups",
        Sethostname = 312 "sethostname",
        Settimeofday = 313 "settimeofday",
        Shmctl = 314 "shmctl",
        Sigaltstack = 315 "sigaltstack",
        Signalfd = 316 "signalfd",
        Sigpending = 317 "sigpending",
        Sigsuspend = 318 "sigsuspend",
        Sigwait = 319 "sigwait",
        Sigwaitinfo = 320 "sigwaitinfo",
        Swapoff = 321 "swapoff",
        Swapon = 322 "swapon",
        Times = 323 "times",
        Umount = 324 "umount",
        Vmsplice = 325 "vmsplice",
        Wait3 = 326 "wait3",
        Waitid = 327 "waitid",
        Prctl = 328 "prctl",
        MqGetattr = 329 "mq_getattr",
        MqNotify = 330 "mq_notify",
        MqSetattr = 331 "mq_setattr",
        TimerCreate = 332 "timer_create",
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
        /// Only doubtful pointers lead to it: pointers into its middle. Or no pointer leads to it,
        /// but a thread that did not report its registers allocated it.
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
        /// By `exit`, `quick_exit` or `_exit`, or by returning from `main`.
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
