//! The names of the C library's functions that read, and of its system calls.
//! `libheapwright-check.so` exports them beside those of heapwright-entry, whose design and
//! invariants this crate shares. Heapwright's own calls go past the checks.
//!
//! **This crate is an implementation detail of heapwright; nothing here is stable.**
//!
//! The names are in a crate of their own because the hardened library does not check reads. There
//! `strlen` stays the C library's, without even a jump.
//!
//! heapwright's own calls lead to `own`, whose targets work byte by byte until the C library's
//! functions are known. The compiler does not replace their loops (`no_builtins`).
#![no_std]
#![no_builtins]

use core::arch::naked_asm;
use core::ffi::{c_int, c_void};
use core::sync::atomic::AtomicPtr;

use heapwright_entry::{own, slots};

/// The targets of heapwright's own calls.
#[repr(C)]
pub struct Own {
    /// `memcmp` and `bcmp`: one function serves both.
    pub memcmp: AtomicPtr<c_void>,
    /// `memchr`.
    pub memchr: AtomicPtr<c_void>,
    /// `strlen`.
    pub strlen: AtomicPtr<c_void>,
    /// `strnlen`.
    pub strnlen: AtomicPtr<c_void>,
    /// `wcsnlen`.
    pub wcsnlen: AtomicPtr<c_void>,
    /// `clock_gettime`, for which the C library makes no system call.
    pub clock_gettime: AtomicPtr<c_void>,
}

// The library's tables tell which memory each function reads (bounds/readers.rs; for system calls
// bounds/calls.rs). The compiler compares the tables with this list.
slots! {
    own: Own {
        memcmp: AtomicPtr::new(plain_memcmp as *mut c_void),
        memchr: AtomicPtr::new(plain_memchr as *mut c_void),
        strlen: AtomicPtr::new(plain_strlen as *mut c_void),
        strnlen: AtomicPtr::new(plain_strnlen as *mut c_void),
        wcsnlen: AtomicPtr::new(plain_wcsnlen as *mut c_void),
        clock_gettime: AtomicPtr::new(plain_clock_gettime as *mut c_void),
    };
    plain:
        memcmp bcmp memchr memrchr rawmemchr memmem wmemcmp wmemchr
        strlen strnlen strcmp strncmp strcasecmp strncasecmp strcoll strxfrm
        strchr strrchr strchrnul index rindex strstr strcasestr strspn strcspn strpbrk
        strtok strtok_r __strtok_r strsep strdup __strdup strndup __strndup
        atoi atol atoll atof strtol strtoul strtoll strtoull strtod strtof
        __isoc23_strtol __isoc23_strtoul __isoc23_strtoll __isoc23_strtoull
        wcslen wcsnlen wcscmp wcsncmp wcschr wcsrchr wcsstr wcsdup
        vprintf vfprintf vdprintf vasprintf vsyslog
        __vprintf_chk __vfprintf_chk __vdprintf_chk __vasprintf_chk __vsyslog_chk
        puts fputs fputs_unlocked fputws
        vsscanf __isoc99_vsscanf __isoc23_vsscanf
        fwrite fwrite_unlocked getline getdelim __getdelim
        qsort qsort_r bsearch
        write pwrite pwrite64 readv preadv preadv64 preadv2 preadv64v2 writev pwritev
        pwritev64 pwritev2 pwritev64v2 vmsplice process_vm_readv process_vm_writev sendfile
        sendfile64 splice copy_file_range getdents64 fstat fstat64 __fxstat __fxstat64
        fstatfs fstatfs64 fstatvfs fstatvfs64 futimens futimes fgetxattr fsetxattr
        flistxattr fremovexattr fcntl fcntl64 ioctl open open64 openat openat64 __open_2
        __open64_2 __openat_2 __openat64_2 creat creat64 stat stat64 lstat lstat64 fstatat
        fstatat64 __xstat __xstat64 __lxstat __lxstat64 __fxstatat __fxstatat64 statx statfs
        statfs64 statvfs statvfs64 access eaccess euidaccess faccessat unlink unlinkat rmdir
        remove mkdir mkdirat mkfifo mkfifoat mknod mknodat __xmknod __xmknodat rename
        renameat renameat2 link linkat symlink symlinkat pathconf
        name_to_handle_at chdir chroot chmod lchmod fchmodat
        chown lchown fchownat truncate truncate64 utime utimes lutimes futimesat utimensat
        getxattr lgetxattr setxattr lsetxattr listxattr llistxattr removexattr lremovexattr
        inotify_add_watch acct swapon swapoff mount umount umount2 fopen fopen64 freopen
        freopen64 opendir scandir scandir64 realpath __realpath_chk mkstemp mkstemp64
        mkostemp mkostemp64
        mkstemps mkdtemp execve execv execvp execvpe fexecve execveat posix_spawn
        posix_spawnp system popen wait waitpid wait3 wait4 waitid send sendto sendmsg
        sendmmsg recvmsg recvmmsg accept accept4 bind connect getsockname getpeername
        getsockopt setsockopt socketpair pipe pipe2 memfd_create poll ppoll __poll_chk
        __ppoll_chk select pselect epoll_ctl epoll_wait epoll_pwait epoll_pwait2
        clock_gettime clock_getres clock_settime clock_nanosleep clock_adjtime adjtimex
        adjtime nanosleep gettimeofday settimeofday time times timer_create timer_gettime
        timer_settime
        timerfd_gettime timerfd_settime getitimer setitimer sigprocmask pthread_sigmask
        sigpending sigsuspend sigwait sigwaitinfo sigtimedwait sigaltstack signalfd uname
        gethostname __gethostname_chk getdomainname __getdomainname_chk sethostname
        setdomainname sysinfo klogctl getrandom getentropy getrlimit getrlimit64 getrusage
        getgroups __getgroups_chk setgroups getresuid getresgid sched_getaffinity
        sched_setaffinity pthread_getname_np pthread_setname_np mincore
        pthread_getaffinity_np pthread_setaffinity_np sched_getparam
        sched_setparam sched_setscheduler sched_rr_get_interval msgctl semctl shmctl
        msgsnd msgrcv semop
        semtimedop mq_open mq_unlink mq_getattr mq_setattr mq_notify mq_send mq_timedsend
        mq_receive mq_timedreceive syscall;
    variadic:
        printf 1 fprintf 2 dprintf 2 asprintf 2 syslog 2
        __printf_chk 2 __fprintf_chk 3 __dprintf_chk 3 __asprintf_chk 3 __syslog_chk 3
        sscanf 2 __isoc99_sscanf 2 __isoc23_sscanf 2
        execl 1 execlp 1 execle 1;
}

own! {
    "__wrap_memcmp" memcmp
    "__wrap_bcmp" memcmp
    "__wrap_memchr" memchr
    "__wrap_strlen" strlen
    "__wrap_strnlen" strnlen
    "__wrap_wcsnlen" wcsnlen
    "__wrap_clock_gettime" clock_gettime
}

/// Serves as `memcmp` until the C library's is known. The functions below do the same.
unsafe extern "C" fn plain_memcmp(one: *const u8, other: *const u8, bytes: usize) -> c_int {
    for at in 0..bytes {
        // SAFETY: by the contract the memory has `bytes` bytes.
        let one = unsafe { *one.wrapping_add(at) };
        // SAFETY: by the contract the memory has `bytes` bytes.
        let other = unsafe { *other.wrapping_add(at) };
        if one != other {
            return c_int::from(one) - c_int::from(other);
        }
    }
    0
}

unsafe extern "C" fn plain_memchr(from: *const u8, byte: c_int, bytes: usize) -> *const u8 {
    for at in 0..bytes {
        // SAFETY: by the contract the memory has such a byte, or `bytes` bytes.
        if unsafe { *from.wrapping_add(at) } == byte as u8 {
            return from.wrapping_add(at);
        }
    }
    core::ptr::null()
}

unsafe extern "C" fn plain_strlen(text: *const u8) -> usize {
    // SAFETY: by the contract this is a string.
    unsafe { plain_strnlen(text, usize::MAX) }
}

unsafe extern "C" fn plain_strnlen(text: *const u8, most: usize) -> usize {
    let mut at = 0;
    // SAFETY: by the contract this is a string, or has `most` bytes.
    while at < most && unsafe { *text.wrapping_add(at) } != 0 {
        at += 1;
    }
    at
}

unsafe extern "C" fn plain_wcsnlen(text: *const u32, most: usize) -> usize {
    let mut at = 0;
    // SAFETY: by the contract this is a string, or has `most` characters.
    while at < most && unsafe { *text.wrapping_add(at) } != 0 {
        at += 1;
    }
    at
}

/// Serves as `clock_gettime` until the C library's is known. A negative result is an error.
#[unsafe(naked)]
unsafe extern "C" fn plain_clock_gettime() {
    #[cfg(target_arch = "x86_64")]
    naked_asm!("mov eax, 228", "syscall", "ret");
    #[cfg(target_arch = "aarch64")]
    naked_asm!("mov x8, #113", "svc #0", "ret");
}
