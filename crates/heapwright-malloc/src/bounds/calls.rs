//! The third table: calls of the kernel, in `libheapwright-check.so`, for `mode=debug`. At a guard
//! page of the debug heap the kernel answers `EFAULT`, an error that the program would not get
//! without heapwright. So each call but `syscall` is verified first, and is made in spite of
//! a finding (see `kernel`). `table` explains the form of a line, and has the calls that the
//! hardened library checks (`read`, `recvfrom`, `getcwd`, ...).
//!
//! | argument | bytes that are verified |
//! |---|---|
//! | a path, a name (`names`) | the string and its end |
//! | a struct (`fills`, `takes`), an array of them | all of it, in the kernel's size |
//! | memory with a given length | all of it; with `fills_up_to` the bytes that the call filled |
//! | a length in a word (`fills_said`, `fills_peer`) | the word, and the length in it |
//! | parts and messages (`writev`, `recvmmsg`) | the lists, and all memory to which they lead |
//! | `argv` and `envp` (`strings`, in `programs`) | the lists, and each string |
//! | `ioctl`, `fcntl` | the size in the request's number; a few have none |
//!
//! The checks allow a null pointer: the kernel refuses it, or it has a meaning. An argument that
//! the checks do not need may be a [`Word`]: the contents of its register are passed on. So a
//! variadic function needs nothing special.

use super::table::{ConstText, From, List, Text, To};
use super::{Check, Filled, Function, Glance, Room, Stage, counted, kernel, product, programs};
use crate::errno;
use core::cell::Cell;
use core::mem::transmute;
use core::sync::atomic::Ordering;
use heapwright_entry_reads::SLOTS;
// (Modules of the table's lines have the names of libc's functions, so the types are named here.)
use libc::{
    c_int, c_long, c_uint, c_ulong, c_ushort, c_void, epoll_event, iovec, itimerspec, itimerval,
    mmsghdr, msghdr, off_t, off64_t, pollfd, rlimit, rusage, sigevent, siginfo_t, socklen_t,
    ssize_t, stack_t, timespec, timeval, timex, tms, utimbuf, utsname,
};
use libc::{stat as Stat, statfs as StatFs, statvfs as StatVfs, sysinfo as SysInfo};

/// An argument that is passed on as it is.
pub(super) type Word = usize;
type Parts = *const iovec;
/// `argv`, `envp`.
pub(super) type Strings = *const ConstText;
/// Two times. A null pointer means now.
type Times = *const [timespec; 2];
type OldTimes = *const [timeval; 2];
/// A set of signals, as the kernel has it.
type Signals = *const u64;
type OldSignals = *mut u64;
type Place = *mut off64_t;
type Length = *mut socklen_t;
type Id = *mut c_uint;

const ALL: usize = usize::MAX;
/// `struct statx`, which not every C library has.
const STATX: usize = 256;
/// `struct sembuf`.
const SEMAPHORE: usize = 6;
/// Commands of `semctl`: the values of all semaphores.
const GETALL: c_int = 13;
const SETALL: c_int = 17;
/// The word of `struct semid_ds` with the number of semaphores.
const NUMBER_OF_SEMAPHORES: usize = if cfg!(target_arch = "x86_64") { 10 } else { 8 };
/// Bytes of `struct msqid_ds`, `semid_ds` and `shmid_ds`, which `IPC_STAT` fills.
const MESSAGES: usize = size_of::<libc::msqid_ds>();
const SEMAPHORES: usize = if cfg!(target_arch = "x86_64") { 104 } else { 88 };
const SEGMENT: usize = size_of::<libc::shmid_ds>();
/// Bytes of `struct mq_attr`.
const QUEUE: usize = 64;
const EVENT: usize = size_of::<epoll_event>();

functions! { CALLS:
    // Files that are open.
    write(file: c_int, from: From, n: usize) -> ssize_t { reads(from, n) }
    pwrite(file: c_int, from: From, n: usize, at: off_t) -> ssize_t { reads(from, n) }
    pwrite64(file: c_int, from: From, n: usize, at: off64_t) -> ssize_t { reads(from, n) }
    readv(file: c_int, parts: Parts, count: c_int) -> ssize_t { writes_parts(parts, count) }
    preadv(file: c_int, parts: Parts, count: c_int, at: off_t) -> ssize_t { writes_parts(parts, count) }
    preadv64(file: c_int, parts: Parts, count: c_int, at: off64_t) -> ssize_t { writes_parts(parts, count) }
    preadv2(file: c_int, parts: Parts, count: c_int, at: off_t, flags: c_int) -> ssize_t { writes_parts(parts, count) }
    preadv64v2(file: c_int, parts: Parts, count: c_int, at: off64_t, flags: c_int) -> ssize_t { writes_parts(parts, count) }
    writev(file: c_int, parts: Parts, count: c_int) -> ssize_t { reads_parts(parts, count) }
    pwritev(file: c_int, parts: Parts, count: c_int, at: off_t) -> ssize_t { reads_parts(parts, count) }
    pwritev64(file: c_int, parts: Parts, count: c_int, at: off64_t) -> ssize_t { reads_parts(parts, count) }
    pwritev2(file: c_int, parts: Parts, count: c_int, at: off_t, flags: c_int) -> ssize_t { reads_parts(parts, count) }
    pwritev64v2(file: c_int, parts: Parts, count: c_int, at: off64_t, flags: c_int) -> ssize_t { reads_parts(parts, count) }
    vmsplice(file: c_int, parts: Parts, count: usize, flags: c_uint) -> ssize_t { reads_parts(parts, count) }
    process_vm_readv(process: c_int, parts: Parts, count: c_ulong, others: Parts, other: c_ulong, flags: c_ulong) -> ssize_t { writes_parts(parts, count), takes_list(others, other as usize) }
    process_vm_writev(process: c_int, parts: Parts, count: c_ulong, others: Parts, other: c_ulong, flags: c_ulong) -> ssize_t { reads_parts(parts, count), takes_list(others, other as usize) }
    sendfile(to: c_int, from: c_int, at: Place, n: usize) -> ssize_t { fills(at) }
    sendfile64(to: c_int, from: c_int, at: Place, n: usize) -> ssize_t { fills(at) }
    splice(from: c_int, at: Place, to: c_int, where_to: Place, n: usize, flags: c_uint) -> ssize_t { fills(at), fills(where_to) }
    copy_file_range(from: c_int, at: Place, to: c_int, where_to: Place, n: usize, flags: c_uint) -> ssize_t { fills(at), fills(where_to) }
    getdents64(file: c_int, to: To, n: usize) -> ssize_t { fills_up_to(to, n, Filled::Bytes) }
    fstat(file: c_int, to: *mut Stat) -> c_int { fills(to) }
    fstat64(file: c_int, to: *mut Stat) -> c_int { fills(to) }
    __fxstat(version: c_int, file: c_int, to: *mut Stat) -> c_int { fills(to) }
    __fxstat64(version: c_int, file: c_int, to: *mut Stat) -> c_int { fills(to) }
    fstatfs(file: c_int, to: *mut StatFs) -> c_int { fills(to) }
    fstatfs64(file: c_int, to: *mut StatFs) -> c_int { fills(to) }
    fstatvfs(file: c_int, to: *mut StatVfs) -> c_int { fills(to) }
    fstatvfs64(file: c_int, to: *mut StatVfs) -> c_int { fills(to) }
    futimens(file: c_int, times: Times) -> c_int { takes(times) }
    futimes(file: c_int, times: OldTimes) -> c_int { takes(times) }
    fgetxattr(file: c_int, name: ConstText, to: To, n: usize) -> ssize_t {
        fills_up_to(to, n, Filled::Bytes),
        names(name)
    }
    fsetxattr(file: c_int, name: ConstText, from: From, n: usize, flags: c_int) -> c_int { names(name), reads(from, n) }
    flistxattr(file: c_int, to: To, n: usize) -> ssize_t { fills_up_to(to, n, Filled::Bytes) }
    fremovexattr(file: c_int, name: ConstText) -> c_int { names(name) }
    fcntl(file: c_int, command: c_int, what: To) -> c_int { controls(command, what) }
    fcntl64(file: c_int, command: c_int, what: To) -> c_int { controls(command, what) }
    ioctl(file: c_int, request: c_ulong, what: To) -> c_int { requests(request, what) }

    // Files by their paths.
    open(path: ConstText, flags: Word, mode: Word) -> c_int { names(path) }
    open64(path: ConstText, flags: Word, mode: Word) -> c_int { names(path) }
    openat(folder: Word, path: ConstText, flags: Word, mode: Word) -> c_int { names(path) }
    openat64(folder: Word, path: ConstText, flags: Word, mode: Word) -> c_int { names(path) }
    __open_2(path: ConstText, flags: Word) -> c_int { names(path) }
    __open64_2(path: ConstText, flags: Word) -> c_int { names(path) }
    __openat_2(folder: Word, path: ConstText, flags: Word) -> c_int { names(path) }
    __openat64_2(folder: Word, path: ConstText, flags: Word) -> c_int { names(path) }
    creat(path: ConstText, mode: Word) -> c_int { names(path) }
    creat64(path: ConstText, mode: Word) -> c_int { names(path) }
    stat(path: ConstText, to: *mut Stat) -> c_int { names(path), fills(to) }
    stat64(path: ConstText, to: *mut Stat) -> c_int { names(path), fills(to) }
    lstat(path: ConstText, to: *mut Stat) -> c_int { names(path), fills(to) }
    lstat64(path: ConstText, to: *mut Stat) -> c_int { names(path), fills(to) }
    fstatat(folder: Word, path: ConstText, to: *mut Stat, flags: Word) -> c_int { names(path), fills(to) }
    fstatat64(folder: Word, path: ConstText, to: *mut Stat, flags: Word) -> c_int { names(path), fills(to) }
    __xstat(version: Word, path: ConstText, to: *mut Stat) -> c_int { names(path), fills(to) }
    __xstat64(version: Word, path: ConstText, to: *mut Stat) -> c_int { names(path), fills(to) }
    __lxstat(version: Word, path: ConstText, to: *mut Stat) -> c_int { names(path), fills(to) }
    __lxstat64(version: Word, path: ConstText, to: *mut Stat) -> c_int { names(path), fills(to) }
    __fxstatat(version: Word, folder: Word, path: ConstText, to: *mut Stat, flags: Word) -> c_int { names(path), fills(to) }
    __fxstatat64(version: Word, folder: Word, path: ConstText, to: *mut Stat, flags: Word) -> c_int { names(path), fills(to) }
    statx(folder: Word, path: ConstText, flags: Word, mask: Word, to: To) -> c_int { names(path), fills_bytes(to, STATX) }
    statfs(path: ConstText, to: *mut StatFs) -> c_int { names(path), fills(to) }
    statfs64(path: ConstText, to: *mut StatFs) -> c_int { names(path), fills(to) }
    statvfs(path: ConstText, to: *mut StatVfs) -> c_int { names(path), fills(to) }
    statvfs64(path: ConstText, to: *mut StatVfs) -> c_int { names(path), fills(to) }
    access(path: ConstText, mode: Word) -> c_int { names(path) }
    eaccess(path: ConstText, mode: Word) -> c_int { names(path) }
    euidaccess(path: ConstText, mode: Word) -> c_int { names(path) }
    faccessat(folder: Word, path: ConstText, mode: Word, flags: Word) -> c_int { names(path) }
    unlink(path: ConstText) -> c_int { names(path) }
    unlinkat(folder: Word, path: ConstText, flags: Word) -> c_int { names(path) }
    rmdir(path: ConstText) -> c_int { names(path) }
    remove(path: ConstText) -> c_int { names(path) }
    mkdir(path: ConstText, mode: Word) -> c_int { names(path) }
    mkdirat(folder: Word, path: ConstText, mode: Word) -> c_int { names(path) }
    mkfifo(path: ConstText, mode: Word) -> c_int { names(path) }
    mkfifoat(folder: Word, path: ConstText, mode: Word) -> c_int { names(path) }
    mknod(path: ConstText, mode: Word, device: Word) -> c_int { names(path) }
    mknodat(folder: Word, path: ConstText, mode: Word, device: Word) -> c_int { names(path) }
    __xmknod(version: Word, path: ConstText, mode: Word, device: *const u64) -> c_int { names(path), takes(device) }
    __xmknodat(version: Word, folder: Word, path: ConstText, mode: Word, device: *const u64) -> c_int { names(path), takes(device) }
    rename(path: ConstText, new: ConstText) -> c_int { names(path), names(new) }
    renameat(folder: Word, path: ConstText, other: Word, new: ConstText) -> c_int { names(path), names(new) }
    renameat2(folder: Word, path: ConstText, other: Word, new: ConstText, flags: Word) -> c_int { names(path), names(new) }
    link(path: ConstText, new: ConstText) -> c_int { names(path), names(new) }
    linkat(folder: Word, path: ConstText, other: Word, new: ConstText, flags: Word) -> c_int { names(path), names(new) }
    symlink(text: ConstText, new: ConstText) -> c_int { names(text), names(new) }
    symlinkat(text: ConstText, folder: Word, new: ConstText) -> c_int { names(text), names(new) }
    pathconf(path: ConstText, name: Word) -> c_long { names(path) }
    name_to_handle_at(
        folder: Word, path: ConstText, handle: *mut c_uint, to: *mut c_int, flags: Word
    ) -> c_int { names(path), fills_handle(handle), fills(to) }
    chdir(path: ConstText) -> c_int { names(path) }
    chroot(path: ConstText) -> c_int { names(path) }
    chmod(path: ConstText, mode: Word) -> c_int { names(path) }
    lchmod(path: ConstText, mode: Word) -> c_int { names(path) }
    fchmodat(folder: Word, path: ConstText, mode: Word, flags: Word) -> c_int { names(path) }
    chown(path: ConstText, user: Word, group: Word) -> c_int { names(path) }
    lchown(path: ConstText, user: Word, group: Word) -> c_int { names(path) }
    fchownat(folder: Word, path: ConstText, user: Word, group: Word, flags: Word) -> c_int { names(path) }
    truncate(path: ConstText, n: Word) -> c_int { names(path) }
    truncate64(path: ConstText, n: Word) -> c_int { names(path) }
    utime(path: ConstText, times: *const utimbuf) -> c_int { names(path), takes(times) }
    utimes(path: ConstText, times: OldTimes) -> c_int { names(path), takes(times) }
    lutimes(path: ConstText, times: OldTimes) -> c_int { names(path), takes(times) }
    futimesat(folder: Word, path: ConstText, times: OldTimes) -> c_int { names(path), takes(times) }
    utimensat(folder: Word, path: ConstText, times: Times, flags: Word) -> c_int { names(path), takes(times) }
    getxattr(path: ConstText, name: ConstText, to: To, n: usize) -> ssize_t {
        fills_up_to(to, n, Filled::Bytes),
        names(path),
        names(name)
    }
    lgetxattr(path: ConstText, name: ConstText, to: To, n: usize) -> ssize_t {
        fills_up_to(to, n, Filled::Bytes),
        names(path),
        names(name)
    }
    setxattr(path: ConstText, name: ConstText, from: From, n: usize, flags: Word) -> c_int { names(path), names(name), reads(from, n) }
    lsetxattr(path: ConstText, name: ConstText, from: From, n: usize, flags: Word) -> c_int { names(path), names(name), reads(from, n) }
    listxattr(path: ConstText, to: To, n: usize) -> ssize_t {
        fills_up_to(to, n, Filled::Bytes),
        names(path)
    }
    llistxattr(path: ConstText, to: To, n: usize) -> ssize_t {
        fills_up_to(to, n, Filled::Bytes),
        names(path)
    }
    removexattr(path: ConstText, name: ConstText) -> c_int { names(path), names(name) }
    lremovexattr(path: ConstText, name: ConstText) -> c_int { names(path), names(name) }
    inotify_add_watch(file: Word, path: ConstText, mask: Word) -> c_int { names(path) }
    acct(path: ConstText) -> c_int { names(path) }
    swapon(path: ConstText, flags: Word) -> c_int { names(path) }
    swapoff(path: ConstText) -> c_int { names(path) }
    mount(what: ConstText, path: ConstText, kind: ConstText, flags: Word, options: Word) -> c_int { names(what), names(path), names(kind) }
    umount(path: ConstText) -> c_int { names(path) }
    umount2(path: ConstText, flags: Word) -> c_int { names(path) }
    // (These call the kernel inside the C library, where no check runs.)
    fopen(path: ConstText, mode: ConstText) -> To { names(path), names(mode) }
    fopen64(path: ConstText, mode: ConstText) -> To { names(path), names(mode) }
    freopen(path: ConstText, mode: ConstText, file: To) -> To { names(path), names(mode) }
    freopen64(path: ConstText, mode: ConstText, file: To) -> To { names(path), names(mode) }
    opendir(path: ConstText) -> To { names(path) }
    scandir(path: ConstText, list: Word, choose: Word, order: Word) -> c_int { names(path) }
    scandir64(path: ConstText, list: Word, choose: Word, order: Word) -> c_int { names(path) }
    realpath(path: ConstText, to: Text) -> Text { names(path) }
    __realpath_chk(path: ConstText, to: Text, limit: usize) -> Text { names(path) }
    mkstemp(path: Text) -> c_int { reads_text(path, ALL) }
    mkstemp64(path: Text) -> c_int { reads_text(path, ALL) }
    mkostemp(path: Text, flags: Word) -> c_int { reads_text(path, ALL) }
    mkostemp64(path: Text, flags: Word) -> c_int { reads_text(path, ALL) }
    mkstemps(path: Text, n: Word) -> c_int { reads_text(path, ALL) }
    mkdtemp(path: Text) -> Text { reads_text(path, ALL) }

    // Programs.
    execve(path: ConstText, words: Strings, variables: Strings) -> c_int { instead programs::execve }
    execv(path: ConstText, words: Strings) -> c_int { instead programs::execv }
    execvp(path: ConstText, words: Strings) -> c_int { instead programs::execvp }
    execvpe(path: ConstText, words: Strings, variables: Strings) -> c_int { instead programs::execvpe }
    fexecve(file: c_int, words: Strings, variables: Strings) -> c_int { instead programs::fexecve }
    execveat(folder: Word, path: ConstText, words: Strings, variables: Strings, flags: Word) -> c_int { instead programs::execveat }
    execl as nothing(path: ConstText, list: List) -> c_int { instead kernel::execl }
    execlp as nothing(path: ConstText, list: List) -> c_int { instead kernel::execlp }
    execle as nothing(path: ConstText, list: List) -> c_int { instead kernel::execle }
    posix_spawn(process: *mut c_int, path: ConstText, actions: Word, attributes: Word, words: Strings, variables: Strings) -> c_int { instead programs::posix_spawn }
    posix_spawnp(process: *mut c_int, path: ConstText, actions: Word, attributes: Word, words: Strings, variables: Strings) -> c_int { instead programs::posix_spawnp }
    system(command: ConstText) -> c_int { instead programs::system }
    popen(command: ConstText, mode: ConstText) -> To { instead programs::popen }
    wait(status: *mut c_int) -> c_int { fills(status) }
    waitpid(process: Word, status: *mut c_int, options: Word) -> c_int { fills(status) }
    wait3(status: *mut c_int, options: Word, used: *mut rusage) -> c_int { fills(status), fills(used) }
    wait4(process: Word, status: *mut c_int, options: Word, used: *mut rusage) -> c_int { fills(status), fills(used) }
    waitid(kind: Word, process: Word, info: *mut siginfo_t, options: Word) -> c_int { fills(info) }

    // Sockets and pipes.
    send(file: c_int, from: From, n: usize, flags: c_int) -> ssize_t { reads(from, n) }
    sendto(file: c_int, from: From, n: usize, flags: c_int, who: From, length: socklen_t) -> ssize_t { reads(from, n), takes_bytes(who, length as usize) }
    sendmsg(file: c_int, message: *const msghdr, flags: c_int) -> ssize_t { reads_message(message) }
    sendmmsg(file: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int) -> c_int { reads_messages(messages, count) }
    recvmsg(file: c_int, message: *mut msghdr, flags: c_int) -> ssize_t { writes_message(message) }
    recvmmsg(file: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int, limit: *mut timespec) -> c_int { writes_messages(messages, count), fills(limit) }
    accept(file: c_int, who: To, length: Length) -> c_int { fills_peer(who, length) }
    accept4(file: c_int, who: To, length: Length, flags: c_int) -> c_int { fills_peer(who, length) }
    bind(file: c_int, where_to: From, length: socklen_t) -> c_int { takes_bytes(where_to, length as usize) }
    connect(file: c_int, where_to: From, length: socklen_t) -> c_int { takes_bytes(where_to, length as usize) }
    getsockname(file: c_int, who: To, length: Length) -> c_int { fills_said(who, length) }
    getpeername(file: c_int, who: To, length: Length) -> c_int { fills_said(who, length) }
    getsockopt(file: c_int, level: c_int, name: c_int, to: To, length: Length) -> c_int { fills_said(to, length) }
    setsockopt(file: c_int, level: c_int, name: c_int, from: From, length: socklen_t) -> c_int { takes_bytes(from, length as usize) }
    socketpair(domain: c_int, kind: c_int, protocol: c_int, ends: *mut [c_int; 2]) -> c_int { fills(ends) }
    pipe(ends: *mut [c_int; 2]) -> c_int { fills(ends) }
    pipe2(ends: *mut [c_int; 2], flags: c_int) -> c_int { fills(ends) }
    memfd_create(name: ConstText, flags: Word) -> c_int { names(name) }

    // Waiting.
    poll(files: *mut pollfd, count: usize, limit: c_int) -> c_int { fills_list(files, count) }
    ppoll(files: *mut pollfd, count: usize, limit: *const timespec, signals: Signals) -> c_int { fills_list(files, count), takes(limit), takes(signals) }
    __poll_chk(files: *mut pollfd, count: usize, limit: c_int, bytes: usize) -> c_int { fills_list(files, count) }
    __ppoll_chk(files: *mut pollfd, count: usize, limit: *const timespec, signals: Signals, bytes: usize) -> c_int { fills_list(files, count), takes(limit), takes(signals) }
    select(count: c_int, read: To, write: To, other: To, limit: *mut timeval) -> c_int { fills_bytes(read, set_of(count)), fills_bytes(write, set_of(count)), fills_bytes(other, set_of(count)), fills(limit) }
    pselect(count: c_int, read: To, write: To, other: To, limit: *const timespec, signals: Signals) -> c_int { fills_bytes(read, set_of(count)), fills_bytes(write, set_of(count)), fills_bytes(other, set_of(count)), takes(limit), takes(signals) }
    epoll_ctl(poll: c_int, what: c_int, file: c_int, event: *const epoll_event) -> c_int { takes(if what == libc::EPOLL_CTL_DEL { core::ptr::null() } else { event }) }
    epoll_wait(poll: c_int, events: *mut epoll_event, most: c_int, limit: c_int) -> c_int {
        fills_up_to(events, product(counted(most), EVENT), Filled::Items(EVENT))
    }
    epoll_pwait(poll: c_int, events: *mut epoll_event, most: c_int, limit: c_int, signals: Signals) -> c_int {
        fills_up_to(events, product(counted(most), EVENT), Filled::Items(EVENT)),
        takes(signals)
    }
    epoll_pwait2(poll: c_int, events: *mut epoll_event, most: c_int, limit: *const timespec, signals: Signals) -> c_int {
        fills_up_to(events, product(counted(most), EVENT), Filled::Items(EVENT)),
        takes(limit),
        takes(signals)
    }

    // Time.
    clock_gettime(clock: c_int, to: *mut timespec) -> c_int { fills(to) }
    clock_getres(clock: c_int, to: *mut timespec) -> c_int { fills(to) }
    clock_settime(clock: c_int, from: *const timespec) -> c_int { takes(from) }
    clock_nanosleep(clock: c_int, flags: c_int, time: *const timespec, left: *mut timespec) -> c_int { takes(time), fills_bytes(left, if flags & libc::TIMER_ABSTIME == 0 { size_of::<timespec>() } else {
        0 })
    }
    clock_adjtime(clock: c_int, how: *mut timex) -> c_int { fills(how) }
    adjtimex(how: *mut timex) -> c_int { fills(how) }
    adjtime(from: *const timeval, left: *mut timeval) -> c_int { takes(from), fills(left) }
    nanosleep(time: *const timespec, left: *mut timespec) -> c_int { takes(time), fills(left) }
    gettimeofday(to: *mut timeval, zone: *mut [c_int; 2]) -> c_int { fills(to), fills(zone) }
    settimeofday(from: *const timeval, zone: *const [c_int; 2]) -> c_int { takes(from), takes(zone) }
    time(to: *mut c_long) -> c_long { fills(to) }
    times(to: *mut tms) -> c_long { fills(to) }
    timer_create(clock: c_int, how: *const sigevent, to: *mut To) -> c_int { takes(how), fills(to) }
    timer_gettime(timer: To, to: *mut itimerspec) -> c_int { fills(to) }
    timer_settime(timer: To, flags: c_int, new: *const itimerspec, old: *mut itimerspec) -> c_int { takes(new), fills(old) }
    timerfd_gettime(file: c_int, to: *mut itimerspec) -> c_int { fills(to) }
    timerfd_settime(file: c_int, flags: c_int, new: *const itimerspec, old: *mut itimerspec) -> c_int { takes(new), fills(old) }
    getitimer(which: c_int, to: *mut itimerval) -> c_int { fills(to) }
    setitimer(which: c_int, new: *const itimerval, old: *mut itimerval) -> c_int { takes(new), fills(old) }

    // Signals. (`sigaction`, interposed elsewhere, passes no memory of the program on.)
    sigprocmask(how: c_int, new: Signals, old: OldSignals) -> c_int { takes(new), fills(old) }
    pthread_sigmask(how: c_int, new: Signals, old: OldSignals) -> c_int { takes(new), fills(old) }
    sigpending(to: OldSignals) -> c_int { fills(to) }
    sigsuspend(signals: Signals) -> c_int { takes(signals) }
    sigwait(signals: Signals, to: *mut c_int) -> c_int { takes(signals), fills(to) }
    sigwaitinfo(signals: Signals, to: *mut siginfo_t) -> c_int { takes(signals), fills(to) }
    sigtimedwait(signals: Signals, to: *mut siginfo_t, limit: *const timespec) -> c_int { takes(signals), fills(to), takes(limit) }
    sigaltstack(new: *const stack_t, old: *mut stack_t) -> c_int { takes(new), fills(old) }
    signalfd(file: c_int, signals: Signals, flags: c_int) -> c_int { takes(signals) }

    // The system, the process, its threads.
    uname(to: *mut utsname) -> c_int { fills(to) }
    gethostname(to: Text, n: usize) -> c_int { fills_up_to(to, n, Filled::Text) }
    __gethostname_chk(to: Text, n: usize, limit: usize) -> c_int { fills_up_to(to, n, Filled::Text) }
    getdomainname(to: Text, n: usize) -> c_int { fills_up_to(to, n, Filled::Text) }
    __getdomainname_chk(to: Text, n: usize, limit: usize) -> c_int { fills_up_to(to, n, Filled::Text) }
    sethostname(from: ConstText, n: usize) -> c_int { reads(from, n) }
    setdomainname(from: ConstText, n: usize) -> c_int { reads(from, n) }
    sysinfo(to: *mut SysInfo) -> c_int { fills(to) }
    klogctl(kind: c_int, to: Text, n: c_int) -> c_int { fills_up_to(to, if matches!(kind, 2..=4) { counted(n) } else {
        0 }, Filled::Bytes)
    }
    getrandom(to: To, n: usize, flags: c_uint) -> ssize_t { fills_up_to(to, n, Filled::Bytes) }
    getentropy(to: To, n: usize) -> c_int { writes(to, n) }
    getrlimit(resource: c_int, to: *mut rlimit) -> c_int { fills(to) }
    getrlimit64(resource: c_int, to: *mut rlimit) -> c_int { fills(to) }
    getrusage(who: c_int, to: *mut rusage) -> c_int { fills(to) }
    getgroups(n: c_int, to: Id) -> c_int {
        fills_up_to(to, product(counted(n), 4), Filled::Items(4))
    }
    __getgroups_chk(n: c_int, to: Id, limit: usize) -> c_int {
        fills_up_to(to, product(counted(n), 4), Filled::Items(4))
    }
    setgroups(n: usize, from: *const c_uint) -> c_int { takes_list(from, n) }
    getresuid(real: Id, effective: Id, saved: Id) -> c_int { fills(real), fills(effective), fills(saved) }
    getresgid(real: Id, effective: Id, saved: Id) -> c_int { fills(real), fills(effective), fills(saved) }
    sched_getaffinity(process: c_int, n: usize, to: To) -> c_int { writes(to, n) }
    sched_setaffinity(process: c_int, n: usize, from: From) -> c_int { takes_bytes(from, n) }
    pthread_getname_np(thread: Word, to: Text, n: usize) -> c_int { writes(to, n) }
    pthread_setname_np(thread: Word, name: ConstText) -> c_int { names(name) }
    mincore(at: Word, n: usize, to: To) -> c_int { fills_bytes(to, n.div_ceil(page())) }
    pthread_getaffinity_np(thread: Word, n: usize, to: To) -> c_int { writes(to, n) }
    pthread_setaffinity_np(thread: Word, n: usize, from: From) -> c_int { takes_bytes(from, n) }
    sched_getparam(process: c_int, to: *mut c_int) -> c_int { fills(to) }
    sched_setparam(process: c_int, from: *const c_int) -> c_int { takes(from) }
    sched_setscheduler(process: c_int, how: c_int, from: *const c_int) -> c_int { takes(from) }
    sched_rr_get_interval(process: c_int, to: *mut timespec) -> c_int { fills(to) }

    // Messages, semaphores and segments.
    msgctl(queue: c_int, command: c_int, what: To) -> c_int {
        takes_bytes(what, set_by(command, MESSAGES)),
        fills_bytes(what, told_by(command, [11, 13], MESSAGES))
    }
    semctl(set: c_int, number: Word, command: c_int, what: To) -> c_int {
        takes_bytes(what, set_by(command, SEMAPHORES) + values_by(set, command, SETALL)),
        fills_bytes(what, told_by(command, [18, 20], SEMAPHORES) + values_by(set, command, GETALL))
    }
    shmctl(segment: c_int, command: c_int, what: To) -> c_int {
        takes_bytes(what, set_by(command, SEGMENT)),
        fills_bytes(what, told_by(command, [13, 15], SEGMENT))
    }
    msgsnd(queue: c_int, from: From, n: usize, flags: c_int) -> c_int {
        reads(from, n.saturating_add(size_of::<c_long>()))
    }
    msgrcv(queue: c_int, to: To, n: usize, kind: c_long, flags: c_int) -> ssize_t {
        writes(to, n.saturating_add(size_of::<c_long>()))
    }
    semop(set: c_int, what: From, count: usize) -> c_int { takes_bytes(what, product(count, SEMAPHORE)) }
    semtimedop(set: c_int, what: From, count: usize, limit: *const timespec) -> c_int { takes_bytes(what, product(count, SEMAPHORE)), takes(limit) }
    mq_open(name: ConstText, flags: c_int, mode: Word, how: From) -> c_int { names(name), takes_bytes(how, if flags & libc::O_CREAT == 0 { 0 } else {
        QUEUE })
    }
    mq_unlink(name: ConstText) -> c_int { names(name) }
    mq_getattr(queue: c_int, to: To) -> c_int { fills_bytes(to, QUEUE) }
    mq_setattr(queue: c_int, from: From, to: To) -> c_int { takes_bytes(from, QUEUE), fills_bytes(to, QUEUE) }
    mq_notify(queue: c_int, how: *const sigevent) -> c_int { takes(how) }
    mq_send(queue: c_int, from: ConstText, n: usize, urgency: c_uint) -> c_int { reads(from, n) }
    mq_timedsend(queue: c_int, from: ConstText, n: usize, urgency: c_uint, limit: *const timespec) -> c_int { reads(from, n), takes(limit) }
    mq_receive(queue: c_int, to: Text, n: usize, urgency: *mut c_uint) -> ssize_t { fills_up_to(to, n, Filled::Bytes), fills(urgency) }
    mq_timedreceive(queue: c_int, to: Text, n: usize, urgency: *mut c_uint, limit: *const timespec) -> ssize_t { fills_up_to(to, n, Filled::Bytes), fills(urgency), takes(limit) }

    // Calls by number.
    syscall(number: c_long, one: Word, two: Word, three: Word, four: Word, five: Word, six: Word) -> c_long { instead kernel::syscall }
}

/// Names that the oldest supported C library (glibc 2.17) lacks, by the minor version that first
/// has them: see `may_have`.
pub(super) const SINCE: &[(u32, &[&str])] = &[
    (25, &["getentropy", "getrandom"]),
    (26, &["preadv2", "preadv64v2", "pwritev2", "pwritev64v2"]),
    (27, &["copy_file_range", "memfd_create"]),
    (28, &["fcntl64", "renameat2", "statx"]),
    (30, &["getdents64"]),
    (33, &["fstat", "fstat64", "fstatat", "fstatat64", "lstat", "lstat64", "mknod", "mknodat"]),
    (33, &["stat", "stat64"]),
    // (Before 2.34 the names of this version, except `execveat`, were in librt.)
    (34, &["mq_getattr", "mq_notify", "mq_setattr"]),
    (34, &["mq_open", "mq_receive", "mq_send", "mq_timedreceive", "mq_timedsend", "mq_unlink"]),
    (34, &["execveat", "timer_create", "timer_gettime", "timer_settime"]),
    (35, &["epoll_pwait2"]),
];

/// The size of the kernel's pages.
fn page() -> usize {
    // SAFETY: the call takes no memory.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// Bytes of a set of `count` files. The kernel accesses whole words of it.
fn set_of(count: c_int) -> usize {
    counted(count).div_ceil(64) * 8
}

/// Bytes that a command of `msgctl`, `semctl` or `shmctl` reads: `size` for `IPC_SET`.
fn set_by(command: c_int, size: usize) -> usize {
    if command == libc::IPC_SET { size } else { 0 }
}

/// Bytes that a command of these functions writes: `size` for `IPC_STAT` and for `stats`, the
/// function's own numbers of `*_STAT` and `*_STAT_ANY`. A number means something else in another
/// function. (`*_INFO` write tables whose length no argument states.)
fn told_by(command: c_int, stats: [c_int; 2], size: usize) -> usize {
    if command == libc::IPC_STAT || stats.contains(&command) { size } else { 0 }
}

/// Bytes that `semctl` reads or writes if `command` is `all`: a value for each semaphore of the
/// set. 0 for another command, or if the kernel does not tell the number.
fn values_by(set: c_int, command: c_int, all: c_int) -> usize {
    if command != all {
        return 0;
    }
    let errno = errno::get();
    let mut about = [0_u64; SEMAPHORES / size_of::<u64>()];
    // SAFETY: the kernel fills the words, which have the size of its structure.
    let got = unsafe { libc::syscall(libc::SYS_semctl, set, 0, libc::IPC_STAT, &raw mut about) };
    errno::set(errno);
    if got < 0 { 0 } else { product(about[NUMBER_OF_SEMAPHORES] as usize, size_of::<c_ushort>()) }
}
