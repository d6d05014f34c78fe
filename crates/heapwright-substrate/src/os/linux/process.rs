//! The process: its files under /proc, its environment, its standard error.
//!
//! This file makes `stat` and `fstat` as system calls: glibc before 2.33 exports no such functions.

use core::ffi::{CStr, c_char};
use core::ptr;

use super::{calls, keeping_errno, sandbox};
use crate::digits::{Digits, number};
use crate::os::{Sandbox, is_filtered};
use core::sync::atomic::{AtomicU64, Ordering};

static STDERR: AtomicU64 = AtomicU64::new(ANY);
/// Text goes to descriptor 2, whatever file that is.
const ANY: u64 = 0;
/// Text goes nowhere.
const NONE: u64 = 1;

/// Notes the file of standard error. Text goes to no other file: if a program closes standard
/// error, a data file may get the number 2. Keeps no descriptor open.
pub fn note_stderr() {
    STDERR.store(identity(2).unwrap_or(NONE), Ordering::Relaxed);
}

pub(super) fn knows_stderr() -> bool {
    STDERR.load(Ordering::Relaxed) != ANY
}

/// Notes that the program has made another file its standard error.
pub fn renew_stderr() {
    if knows_stderr() {
        note_stderr();
    }
}

/// Makes later text go to descriptor 2, without a look at its file. If descriptor 2 is another file
/// by now, later text goes nowhere.
pub fn trust_stderr() {
    let known = STDERR.load(Ordering::Relaxed);
    let is_right = known == ANY || identity(2) == Some(known);
    STDERR.store(if is_right { ANY } else { NONE }, Ordering::Relaxed);
}

/// Writes bytes to the noted file of standard error, as far as the file takes them. If the program
/// has closed descriptor 2, descriptor 1 or 0 may still be this file.
pub fn write_stderr(bytes: &[u8]) {
    if let Some(file) = stderr() {
        write_all(file, bytes);
    }
}

fn stderr() -> Option<i32> {
    match STDERR.load(Ordering::Relaxed) {
        ANY => Some(2),
        NONE => None,
        known => [2, 1, 0].into_iter().find(|&file| identity(file) == Some(known)),
    }
}

fn identity(file: i32) -> Option<u64> {
    let about = keeping_errno(|| about(file))?;
    Some(about.st_dev.rotate_left(32) ^ about.st_ino | 1 << 63)
}

fn about(file: i32) -> Option<libc::stat> {
    // SAFETY: a struct of numbers, for which zeros are valid.
    let mut about = unsafe { core::mem::zeroed::<libc::stat>() };
    // SAFETY: the call writes the struct that it is given.
    (unsafe { libc::syscall(libc::SYS_fstat, file, &raw mut about) } == 0).then_some(about)
}

/// Whether a write to standard error would not wait now.
pub fn can_write_stderr() -> bool {
    let Some(fd) = stderr() else { return false };
    let mut waiting = libc::pollfd { fd, events: libc::POLLOUT, revents: 0 };
    let (none, no_mask) = (libc::timespec { tv_sec: 0, tv_nsec: 0 }, ptr::null::<u8>());
    // SAFETY: the call writes a struct and reads a time, without a mask.
    let ready = keeping_errno(|| unsafe {
        libc::syscall(libc::SYS_ppoll, &raw mut waiting, 1, &raw const none, no_mask, 8)
    });
    ready == 1 && waiting.revents & libc::POLLOUT != 0
}

/// Writes all of `bytes` to the open file `file`. False: because of an error, bytes are missing.
pub fn write_all(file: i32, mut bytes: &[u8]) -> bool {
    keeping_errno(|| {
        while !bytes.is_empty() {
            let wrote = calls::write(file, bytes);
            if wrote < 0 && super::errno() == libc::EINTR {
                continue;
            }
            if wrote <= 0 {
                return false;
            }
            bytes = &bytes[wrote as usize..];
        }
        true
    })
}

/// Ends the process with SIGABRT.
pub fn abort() -> ! {
    #[cfg(target_env = "musl")]
    end_this_thread();
    // SAFETY: no preconditions.
    unsafe { libc::abort() }
}

/// Sends SIGABRT to the calling thread, if the signal has its default action. (musl's `abort` reads
/// the thread's number from memory. A child of `vfork` finds its parent's number there.)
#[cfg(target_env = "musl")]
fn end_this_thread() {
    let mut action = [0usize; 8];
    let set = size_of::<u64>();
    let nothing: *const usize = core::ptr::null();
    // SAFETY: the call changes nothing, and writes at most 32 bytes. (A raw system call, because
    // the C layer has a `sigaction` of its own.)
    let asked = unsafe {
        libc::syscall(libc::SYS_rt_sigaction, libc::SIGABRT, nothing, action.as_mut_ptr(), set)
    };
    if asked == 0 && action[0] == libc::SIG_DFL {
        // SAFETY: no preconditions.
        let thread = unsafe { libc::syscall(libc::SYS_gettid) };
        // SAFETY: a signal to this thread, which ends the process.
        unsafe { libc::syscall(libc::SYS_tkill, thread, libc::SIGABRT) };
    }
}

/// The process id. (If a child of `vfork` is in a sandbox, this is its parent's id.)
pub fn process_id() -> u32 {
    // SAFETY: no preconditions.
    if is_filtered() { sandbox::process_id() } else { unsafe { libc::getpid() }.cast_unsigned() }
}

/// The process id in a forked child, read from the kernel again.
pub fn new_process_id() -> u32 {
    sandbox::renew()
}

/// The parent's process id.
pub fn parent_id() -> u32 {
    // SAFETY: no preconditions.
    unsafe { libc::getppid() as u32 }
}

/// An open follows no link, which another user may have made, and waits for no reader of a pipe.
const OWN: i32 = libc::O_WRONLY | libc::O_CLOEXEC | libc::O_NOFOLLOW | libc::O_NONBLOCK;

/// Opens a plain file of this user. `None`: there is no such file.
fn open_of(user: u32, path: &CStr, how: i32) -> Option<(i32, libc::stat)> {
    let file = calls::open(path, OWN | how, 0);
    if file < 0 {
        return None;
    }
    let is_plain =
        |about: &libc::stat| about.st_mode & libc::S_IFMT == libc::S_IFREG && about.st_nlink == 1;
    let about = about(file).filter(|about| is_plain(about) && about.st_uid == user);
    if about.is_none() {
        calls::close(file);
    }
    Some((file, about?))
}

fn make_own(path: &CStr, how: i32) -> Option<i32> {
    let file = calls::open(path, OWN | how | libc::O_CREAT | libc::O_EXCL, 0o600);
    (file >= 0).then_some(file)
}

/// Appends bytes to a file of this user with one `write`. `path` ends with a zero. False: not all
/// bytes were written. If `make` is true, a missing file is made, and a file that is not empty
/// stays unchanged (the result is true).
pub fn append_file(path: &[u8], bytes: &[u8], make: bool) -> bool {
    append_whole(path, bytes, make).is_ok()
}

/// The reason why bytes were not appended to a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotAppended {
    /// The file cannot be opened.
    Closed,
    /// The disk is full, or the process may write no larger file.
    Full,
}

/// As [`append_file`], but returns the reason of a failure, and then cuts the file to its old
/// length if possible.
///
/// # Errors
///
/// The reason.
pub fn append_whole(path: &[u8], bytes: &[u8], make: bool) -> Result<(), NotAppended> {
    let path = CStr::from_bytes_until_nul(path).map_err(|_| NotAppended::Closed)?;
    keeping_errno(|| {
        let made = if make { make_own(path, libc::O_APPEND) } else { None };
        let (file, length) = match made {
            Some(file) => (file, 0),
            None => match open_of(user_id(), path, libc::O_APPEND) {
                Some((file, about)) if make && about.st_size > 0 => {
                    calls::close(file);
                    return Ok(());
                }
                Some((file, about)) => (file, about.st_size),
                None => return Err(NotAppended::Closed),
            },
        };
        let wrote = calls::write(file, bytes);
        let is_whole = usize::try_from(wrote) == Ok(bytes.len());
        if !is_whole && wrote > 0 && !is_filtered() {
            // SAFETY: an open file and a number.
            unsafe { libc::syscall(libc::SYS_ftruncate, file, length) };
        }
        calls::close(file);
        if is_whole { Ok(()) } else { Err(NotAppended::Full) }
    })
}

/// Replaces the file at `path`, which ends with a zero, by the output of `write`. Readers find the
/// old or the new contents, and never a part. False: the file is unchanged.
pub fn save_file(path: &[u8], write: impl FnOnce(i32) -> bool) -> bool {
    const SUFFIX: &[u8] = b".new\0";
    let mut beside = [0; 4096];
    let Ok(path) = CStr::from_bytes_until_nul(path) else { return false };
    let length = path.to_bytes().len();
    let Some(place) = beside.get_mut(..length + SUFFIX.len()) else { return false };
    place[..length].copy_from_slice(path.to_bytes());
    place[length..].copy_from_slice(SUFFIX);
    if !replace_private_file(&beside, write) {
        return false;
    }
    // SAFETY: both paths end with a zero.
    keeping_errno(|| unsafe { libc::rename(beside.as_ptr().cast(), path.as_ptr()) } == 0)
        || remove_file(&beside)
}

fn remove_file(path: &[u8]) -> bool {
    if !is_filtered() {
        // SAFETY: a path that ends with a zero.
        keeping_errno(|| unsafe { libc::unlink(path.as_ptr().cast()) });
    }
    false
}

/// If the file at `path`, which ends with a zero, is the user `from`'s, gives it to the user `to`.
#[cfg(feature = "debug")]
pub fn give_file(path: &[u8], from: u32, to: u32) {
    let Ok(path) = CStr::from_bytes_until_nul(path) else { return };
    keeping_errno(|| {
        if let Some((file, _)) = open_of(from, path, 0) {
            // SAFETY: an open file and numbers.
            unsafe { libc::fchown(file, to, libc::gid_t::MAX) };
            calls::close(file);
        }
    });
}

/// Makes `folder` in the folder `base`, and in it the folder `path` for `user` alone. All paths end
/// with a zero. Makes nothing unless this user owns `base`, and other users may pass it, but not
/// write to it.
#[cfg(feature = "debug")]
pub fn make_folder_of(user: u32, path: &[u8], folder: &[u8], base: &[u8]) {
    let [Ok(path), Ok(folder), Ok(base)] = [path, folder, base].map(CStr::from_bytes_until_nul)
    else {
        return;
    };
    // SAFETY: a struct of numbers, for which zeros are valid.
    let mut about = unsafe { core::mem::zeroed::<libc::stat>() };
    keeping_errno(|| {
        let (here, at, no_link) = (libc::AT_FDCWD, base.as_ptr(), libc::AT_SYMLINK_NOFOLLOW);
        // SAFETY: a path that ends with a zero, and a struct to write to.
        let known =
            unsafe { libc::syscall(libc::SYS_newfstatat, here, at, &raw mut about, 0) } == 0;
        if !known || about.st_uid != user_id() || about.st_mode & 0o023 != 0o001 {
            return;
        }
        // SAFETY: a path that ends with a zero.
        if unsafe { libc::mkdir(folder.as_ptr(), 0o711) } == 0 {
            // SAFETY: a path that ends with a zero. (The program may mask bits of the mode.)
            unsafe { libc::chmod(folder.as_ptr(), 0o711) };
        }
        // SAFETY: a path that ends with a zero.
        if unsafe { libc::mkdir(path.as_ptr(), 0o700) } == 0 {
            // SAFETY: a path that ends with a zero. (Only this user could have put a link there.)
            unsafe { libc::fchownat(here, path.as_ptr(), user, libc::gid_t::MAX, no_link) };
        }
    });
}

/// Copies the current folder's path into `out`. Returns its length; 0: it is too long or unknown.
pub fn current_folder(out: &mut [u8]) -> usize {
    if is_filtered() {
        return 0;
    }
    keeping_errno(|| {
        // SAFETY: the pointer and the length are the slice's.
        let got = unsafe { libc::getcwd(out.as_mut_ptr().cast(), out.len()) };
        if got.is_null() {
            out.fill(0);
            return 0;
        }
        out.iter().position(|&byte| byte == 0).unwrap_or(0)
    })
}

/// Maps a file for the life of the process. `None`: the file cannot be read.
#[cfg(feature = "debug")]
pub fn map_file(path: &CStr) -> Option<&'static [u8]> {
    keeping_errno(|| {
        let fd = calls::open(path, libc::O_RDONLY | libc::O_CLOEXEC, 0);
        if fd < 0 {
            return None;
        }
        // SAFETY: no preconditions on the offset.
        let size = unsafe { libc::lseek(fd, 0, libc::SEEK_END) };
        let size = usize::try_from(size).unwrap_or(0);
        let flags = libc::MAP_PRIVATE | libc::MAP_POPULATE;
        // SAFETY: a new mapping replaces nothing; a length of 0 is refused.
        let at = unsafe { libc::mmap(ptr::null_mut(), size, libc::PROT_READ, flags, fd, 0) };
        calls::close(fd);
        // SAFETY: just mapped, and never unmapped. If another process truncates the file, this
        // process ends, as with any mapped file.
        (at != libc::MAP_FAILED).then(|| unsafe { core::slice::from_raw_parts(at.cast(), size) })
    })
}

/// Replaces the file at `path`, which ends with a zero, by the output of `write`, readable for this
/// user alone. False: it could not be made or written.
pub fn replace_private_file(path: &[u8], write: impl FnOnce(i32) -> bool) -> bool {
    let Ok(path) = CStr::from_bytes_until_nul(path) else { return false };
    keeping_errno(|| {
        remove_file(path.to_bytes_with_nul());
        let Some(file) = make_own(path, 0) else { return false };
        let written = write(file);
        calls::close(file);
        written || remove_file(path.to_bytes_with_nul())
    })
}

/// From this number of segments in the system on, none is made. The kernel's default limit is 4096.
const MOST_SEGMENTS: i32 = 1024;

/// Makes zeroed memory of `size` bytes that forked children share with this process. Other
/// processes of the same user can attach the memory by the number that the kernel lists, but cannot
/// shrink it. The kernel frees the memory when no process has it mapped. It counts as heapwright's
/// own ([`super::is_own`]), and is not in core dumps. `None`: refused. May change `errno`.
pub fn shared_memory(size: usize) -> Option<*mut u8> {
    if is_filtered() {
        return None;
    }
    const SHM_INFO: i32 = 14;
    // SAFETY: a struct of numbers, for which zeros are valid.
    let mut about = unsafe { core::mem::zeroed::<libc::shmid_ds>() };
    // SAFETY: the call writes a `shm_info`, which is smaller than the struct that it is given.
    let is_known = unsafe { libc::shmctl(0, SHM_INFO, &raw mut about) } >= 0;
    // SAFETY: the struct begins with the number of segments, an `int`.
    let segments = unsafe { (&raw const about).cast::<i32>().read() };
    if !is_known || segments >= MOST_SEGMENTS {
        return None;
    }
    // SAFETY: the call takes only numbers.
    let id = unsafe { libc::shmget(libc::IPC_PRIVATE, size, libc::IPC_CREAT | 0o600) };
    if id < 0 {
        return None;
    }
    // SAFETY: a new mapping replaces nothing.
    let at = unsafe { libc::shmat(id, ptr::null(), 0) }.cast::<u8>();
    // SAFETY: the call takes a number. The memory stays as long as it is attached.
    unsafe { libc::shmctl(id, libc::IPC_RMID, ptr::null_mut()) };
    (at.addr() != usize::MAX).then(|| {
        super::note_own(at.addr(), size);
        // SAFETY: the mapping just made.
        unsafe { super::keep_out_of_dumps(at, size) };
        at
    })
}

/// The lower half of the inode number of the process's PID namespace. 0: not known.
pub fn process_namespace() -> u32 {
    if is_filtered() {
        return 0;
    }
    // SAFETY: a struct of numbers, for which zeros are valid.
    let mut about = unsafe { core::mem::zeroed::<libc::stat>() };
    // SAFETY: a path that ends with a zero, and a struct to write to.
    let known = keeping_errno(|| unsafe {
        let path = c"/proc/self/ns/pid".as_ptr();
        libc::syscall(libc::SYS_newfstatat, libc::AT_FDCWD, path, &raw mut about, 0) == 0
    });
    if known { about.st_ino as u32 } else { 0 }
}

/// The effective user id.
pub fn user_id() -> u32 {
    // SAFETY: no preconditions.
    if is_filtered() { sandbox::user_id() } else { unsafe { libc::geteuid() } }
}

/// The name of the calling thread, at most 15 bytes and a zero. The first thread's name is the
/// process's. In a sandbox, the name of the thread that entered it.
pub fn process_name() -> [u8; 16] {
    if is_filtered() {
        return sandbox::name();
    }
    let mut name = [0; 16];
    // SAFETY: the buffer has the 16 bytes that the call writes.
    keeping_errno(|| unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) });
    name
}

/// Whether the process runs with more rights than its starter (set-uid).
pub fn is_privileged() -> bool {
    // SAFETY: reads the auxiliary vector; no preconditions.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Reads a file from its start, and passes each piece to `take` until it returns false. Returns
/// false if the file cannot be read.
pub fn read_file(path: &CStr, buffer: &mut [u8], mut take: impl FnMut(&[u8]) -> bool) -> bool {
    keeping_errno(|| {
        let fd = calls::open(path, libc::O_RDONLY | libc::O_CLOEXEC, 0);
        if fd < 0 {
            return false;
        }
        let mut whole = true;
        loop {
            let got = calls::read(fd, buffer);
            if got <= 0 {
                whole &= got == 0;
                break;
            }
            if !take(&buffer[..got as usize]) {
                break;
            }
        }
        calls::close(fd);
        whole
    })
}

unsafe extern "C" {
    static environ: *const *const c_char;
}

/// Copies the value of an environment variable into `out`, as far as it fits. Returns the length of
/// the value. `None`: the variable is not set.
///
/// At the first allocation the C library may not have set `environ`. Then this function reads the
/// kernel's own copy.
#[inline]
pub fn environment<const N: usize>(name: &[u8; N], out: &mut [u8]) -> Option<usize> {
    // SAFETY: a plain read of a word that the C library sets before threads.
    let mut entry = unsafe { environ };
    if entry.is_null() {
        return environment_from_kernel(name, out);
    }
    loop {
        // SAFETY: the array ends with a null, which stops the loop.
        let variable = unsafe { *entry };
        if variable.is_null() {
            return None;
        }
        // SAFETY: every element of the array is a C string.
        if let Some(value) = unsafe { value_of(variable, name) } {
            return Some(copy_value(value, out));
        }
        // SAFETY: the element was not the null at the end.
        entry = unsafe { entry.add(1) };
    }
}

/// The value in the C string `variable`, if it has the form `name=value`.
///
/// The function compares byte by byte, with a name that is known at compile time. A call of
/// `strlen`, or a name among the constants, would touch more pages in each starting program.
///
/// # Safety
///
/// `variable` is a C string, and no thread changes it.
#[inline]
unsafe fn value_of<const N: usize>(
    variable: *const c_char,
    name: &[u8; N],
) -> Option<&'static CStr> {
    let at = |index: usize| variable.cast::<u8>().wrapping_add(index);
    for (index, &wanted) in name.iter().enumerate() {
        // SAFETY: the bytes before this one matched, so none was the zero at the end.
        if unsafe { at(index).read() } != wanted {
            return None;
        }
    }
    // SAFETY: all bytes of the name matched, so none was the zero at the end.
    if unsafe { at(N).read() } != b'=' {
        return None;
    }
    // SAFETY: this is the rest of a C string.
    Some(unsafe { CStr::from_ptr(at(N + 1).cast()) })
}

#[cold]
fn copy_value(value: &CStr, out: &mut [u8]) -> usize {
    let value = value.to_bytes();
    let fits = value.len().min(out.len());
    out[..fits].copy_from_slice(&value[..fits]);
    value.len()
}

/// Whether an environment variable is set.
#[inline]
pub fn has_variable<const N: usize>(name: &[u8; N]) -> bool {
    environment(name, &mut []).is_some()
}

/// The options that the library was built with. The environment's options follow them.
///
/// A library with such options (libheapwright-hardened.so) defines the symbol, which is weak and
/// hidden. Without a definition its address is null, and the loader does not search for it.
#[inline]
pub fn default_options() -> &'static [u8] {
    let text: *const c_char;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reads one entry of the global offset table.
    unsafe {
        core::arch::asm!(
            ".weak __heapwright_0_1_default_options",
            ".hidden __heapwright_0_1_default_options",
            "mov {}, qword ptr [rip + __heapwright_0_1_default_options@GOTPCREL]",
            out(reg) text,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: reads one entry of the global offset table.
    unsafe {
        core::arch::asm!(
            ".weak __heapwright_0_1_default_options",
            ".hidden __heapwright_0_1_default_options",
            "adrp {0}, :got:__heapwright_0_1_default_options",
            "ldr {0}, [{0}, :got_lo12:__heapwright_0_1_default_options]",
            out(reg) text,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    if text.is_null() {
        return b"";
    }
    // SAFETY: the library that defines the symbol makes it a constant C string.
    unsafe { CStr::from_ptr(text) }.to_bytes()
}

/// [`environment`] from /proc/self/environ: `NAME=value` entries, each ended by a zero.
fn environment_from_kernel(name: &[u8], out: &mut [u8]) -> Option<usize> {
    let mut buffer = [0; 512];
    // The number of bytes of `name=` that this entry matches so far; `None`: it does not match.
    let mut matched = Some(0);
    let mut length = 0;
    let mut found = false;
    read_file(c"/proc/self/environ", &mut buffer, |bytes| {
        for &byte in bytes {
            if byte == 0 {
                if matched == Some(name.len() + 1) {
                    found = true;
                    return false;
                }
                matched = Some(0);
                continue;
            }
            match matched {
                Some(at) if at < name.len() => {
                    matched = (byte == name[at]).then_some(at + 1);
                }
                Some(at) if at == name.len() => {
                    matched = (byte == b'=').then_some(at + 1);
                }
                Some(_) => {
                    if let Some(place) = out.get_mut(length) {
                        *place = byte;
                    }
                    length += 1;
                }
                None => {}
            }
        }
        true
    });
    found.then_some(length)
}

/// Resident bytes of the process: now, and at the peak.
pub fn resident_bytes() -> (u64, u64) {
    let mut now = 0;
    let mut peak = 0;
    let mut text = [0; 2048];
    let length = crate::os::read_beginning(c"/proc/self/status", &mut text);
    for line in text[..length].split(|&b| b == b'\n') {
        if let Some(rest) = line.strip_prefix(b"VmHWM:") {
            peak = kibibytes(rest);
        } else if let Some(rest) = line.strip_prefix(b"VmRSS:") {
            now = kibibytes(rest);
        }
    }
    (now, peak.max(now))
}

/// Resident bytes of the process now; 0: not known.
pub fn resident_now() -> usize {
    let mut text = [0; 64];
    let length = crate::os::read_beginning(c"/proc/self/statm", &mut text);
    let pages = text[..length].split(|&byte| byte == b' ').nth(1).and_then(number);
    pages.unwrap_or(0) * super::kernel_page_size()
}

fn kibibytes(text: &[u8]) -> u64 {
    let blanks = text.iter().take_while(|b| !b.is_ascii_digit()).count();
    number(&text[blanks..]).unwrap_or(0) as u64 * 1024
}

/// The system did not tell.
#[derive(Clone, Copy, Debug)]
pub struct Unknown;

/// One line of /proc/self/maps.
#[derive(Clone, Copy)]
pub struct Mapping {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
    /// May be read.
    pub readable: bool,
    /// May be written.
    pub writable: bool,
    /// May be executed.
    #[cfg_attr(not(feature = "debug"), allow(dead_code, reason = "for call stacks"))]
    pub executable: bool,
    /// Other processes may see writes to it.
    #[cfg_attr(not(feature = "debug"), allow(dead_code, reason = "for leak checks"))]
    pub shared: bool,
    /// The offset of the first byte in the mapped file.
    #[cfg_attr(not(feature = "debug"), allow(dead_code, reason = "for call stacks"))]
    pub offset: usize,
    /// The kernel's name for the mapping, cut to fit: a path, `[heap]`, `[stack]`, or empty.
    name: [u8; Self::NAME],
    name_length: usize,
}

impl Mapping {
    /// Room for a name, in bytes. A name of this length may have been cut.
    pub const NAME: usize = 240;

    /// The kernel's name for the mapping.
    pub fn name(&self) -> &[u8] {
        &self.name[..self.name_length]
    }
}

/// The mapping that contains `address`, if any. This is slow, because it reads /proc/self/maps.
/// `Err`: something is mapped, but the file cannot be read (no /proc, no descriptor left).
pub fn mapping_of(address: usize) -> Result<Option<Mapping>, Unknown> {
    let mut found = None;
    let read = each_mapping(&mut |mapping| {
        if (mapping.start..mapping.end).contains(&address) {
            found = Some(*mapping);
        }
        found.is_none()
    });
    if read || !is_mapped(address) { Ok(found) } else { Err(Unknown) }
}

/// Returns `process`. If the process's first thread has ended, returns `thread`, because
/// `/proc/self` shows no memory any more.
pub(super) fn of_memory<'a>(process: &'a CStr, thread: &'a CStr) -> &'a CStr {
    let first = process_id();
    if super::thread_id() == first || !is_over(first) { process } else { thread }
}

/// As [`read_file`], for a file that the kernel has for each thread, such as `/stat`.
pub(super) fn read_of_thread(
    thread: u32,
    file: &[u8],
    buffer: &mut [u8],
    take: impl FnMut(&[u8]) -> bool,
) -> bool {
    const FOLDER: &[u8] = b"/proc/self/task/";
    let digits = Digits::decimal(thread.into());
    let mut path = [0; 48];
    let parts = FOLDER.iter().chain(digits.as_bytes()).chain(file);
    path.iter_mut().zip(parts).for_each(|(place, &byte)| *place = byte);
    CStr::from_bytes_until_nul(&path).is_ok_and(|path| read_file(path, buffer, take))
}

/// Whether a thread has ended, even if the kernel still lists it.
pub(super) fn is_over(thread: u32) -> bool {
    let mut state = b'Z';
    let mut bytes = [0; 256];
    read_of_thread(thread, b"/stat\0", &mut bytes, |bytes| {
        // number (name) state ...
        let name_ends = bytes.iter().rposition(|&byte| byte == b')');
        state = name_ends.and_then(|at| bytes.get(at + 2)).copied().unwrap_or(b'Z');
        false
    });
    matches!(state, b'Z' | b'X')
}

/// Calls `visit` with each mapping, in order of address, until it returns false. Returns false if
/// the mappings cannot be read.
pub fn each_mapping(visit: &mut dyn FnMut(&Mapping) -> bool) -> bool {
    // A larger buffer would save system calls, but stacks may be small.
    let mut buffer = [0; 2048];
    let mut line = [0; 320];
    let mut length = 0;
    let path = of_memory(c"/proc/self/maps", c"/proc/thread-self/maps");
    read_file(path, &mut buffer, |bytes| {
        for &byte in bytes {
            if byte != b'\n' {
                if length < line.len() {
                    line[length] = byte;
                    length += 1;
                }
                continue;
            }
            if let Some(mapping) = parse_mapping(&line[..length])
                && !visit(&mapping)
            {
                return false;
            }
            length = 0;
        }
        true
    })
}

/// The reason why [`each_mapping`] failed. `None`: the reason is not known, or /proc is missing.
pub fn why_no_mappings() -> Option<&'static str> {
    keeping_errno(|| {
        let path = of_memory(c"/proc/self/maps", c"/proc/thread-self/maps");
        let file = calls::open(path, libc::O_RDONLY | libc::O_CLOEXEC, 0);
        if file >= 0 {
            calls::close(file);
            return None;
        }
        match super::errno() {
            libc::EMFILE => Some("the process has too many open files (RLIMIT_NOFILE)"),
            libc::ENFILE => Some("the machine has too many open files"),
            libc::EACCES | libc::EPERM => Some("a policy forbids the process to read /proc"),
            _ => None,
        }
    })
}

fn is_mapped(address: usize) -> bool {
    let page = address & !(super::kernel_page_size() - 1);
    let mut resident = 0;
    if is_filtered() {
        return is_readable(page);
    }
    keeping_errno(|| {
        let page = ptr::without_provenance_mut(page);
        // SAFETY: the call reads no memory at the address, and writes one byte.
        unsafe { libc::mincore(page, 1, &raw mut resident) == 0 }
    })
}

/// Whether the word at an address (a multiple of 8) is readable. Safe in a signal handler, because
/// this opens no file: the call `futex` makes the kernel read the word.
pub fn is_readable(address: usize) -> bool {
    const IMPROBABLE: u32 = 0x9e37_79b9;
    let how = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    let no_time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    crate::os::sandbox() != Sandbox::Strict
        && keeping_errno(|| {
            let word = ptr::without_provenance::<u32>(address);
            // SAFETY: the call reads the word if it can, changes nothing, and does not wait.
            let got = unsafe {
                libc::syscall(libc::SYS_futex, word, how, IMPROBABLE, &raw const no_time)
            };
            got == 0 || super::errno() != libc::EFAULT
        })
}

/// Whether the calling thread is the process's first (in a forked child: the one that forked).
#[cfg(feature = "debug")]
pub fn is_first_thread() -> bool {
    super::thread_id() == process_id()
}

/// The program's own headers, if the kernel passed them; otherwise empty.
#[cfg(feature = "debug")]
pub fn program_headers() -> &'static [libc::Elf64_Phdr] {
    // SAFETY: reads the auxiliary vector; no preconditions.
    let at = unsafe { libc::getauxval(libc::AT_PHDR) } as usize;
    // SAFETY: reads the auxiliary vector; no preconditions.
    let count = unsafe { libc::getauxval(libc::AT_PHNUM) } as usize;
    if at == 0 || !at.is_multiple_of(align_of::<libc::Elf64_Phdr>()) {
        return &[];
    }
    let at = ptr::with_exposed_provenance(at);
    // SAFETY: the kernel tells their number. The headers stay mapped and unchanged.
    unsafe { core::slice::from_raw_parts(at, count) }
}

/// Whether the kernel loaded an interpreter. It loads none for a static program, or for a loader
/// that the user starts.
#[cfg(feature = "debug")]
pub fn has_interpreter() -> bool {
    // SAFETY: reads the auxiliary vector; no preconditions.
    unsafe { libc::getauxval(libc::AT_BASE) != 0 }
}

/// Copies the program's path into `out`, as far as it fits. Returns the copied length; 0: unknown.
pub fn program_path(out: &mut [u8]) -> usize {
    if is_filtered() {
        return 0;
    }
    keeping_errno(|| {
        let path = c"/proc/self/exe".as_ptr();
        // SAFETY: the path is a C string; the pointer and the length are the slice's.
        let got = unsafe { libc::readlink(path, out.as_mut_ptr().cast(), out.len()) };
        usize::try_from(got).unwrap_or(0)
    })
}

/// Parses `start-end perms offset dev inode   name`.
fn parse_mapping(line: &[u8]) -> Option<Mapping> {
    let mut fields = line.split(|&b| b == b' ').filter(|f| !f.is_empty());
    let range = fields.next()?;
    let dash = range.iter().position(|&b| b == b'-')?;
    let perms = fields.next()?;
    let offset = hexadecimal(fields.next()?)?;
    let inode = fields.nth(1)?;
    let after = inode.as_ptr().addr() - line.as_ptr().addr() + inode.len();
    let name = line[after..].trim_ascii();
    let mut mapping = Mapping {
        start: hexadecimal(&range[..dash])?,
        end: hexadecimal(&range[dash + 1..])?,
        readable: perms.first() == Some(&b'r'),
        writable: perms.get(1) == Some(&b'w'),
        executable: perms.get(2) == Some(&b'x'),
        shared: perms.get(3) == Some(&b's'),
        offset,
        name: [0; Mapping::NAME],
        name_length: name.len().min(Mapping::NAME),
    };
    mapping.name[..mapping.name_length].copy_from_slice(&name[..mapping.name_length]);
    Some(mapping)
}

pub(super) fn hexadecimal(text: &[u8]) -> Option<usize> {
    text.iter().try_fold(0usize, |n, &b| {
        let digit = (b as char).to_digit(16)?;
        Some(n << 4 | digit as usize)
    })
}

/// Whether an address is in the mapping of the current stack.
pub fn is_on_this_stack(address: usize) -> bool {
    let here = ptr::from_ref(&address).addr();
    matches!(mapping_of(here), Ok(Some(m)) if (m.start..m.end).contains(&address))
}

#[cfg(test)]
mod tests {
    #[cfg(feature = "debug")]
    extern crate std;
    use super::*;
    use crate::os::{Contents, what_is_at};

    #[test]
    fn maps_lines_are_parsed() {
        let m = parse_mapping(b"7f00-7f10 rw-p 00002000 fe:00 12   /lib/a b.so").unwrap();
        assert_eq!((m.start, m.end, m.readable, m.writable), (0x7f00, 0x7f10, true, true));
        assert_eq!((m.offset, m.name()), (0x2000, &b"/lib/a b.so"[..]));
        let m = parse_mapping(b"10-20 ---p 0 0:0 0 ").unwrap();
        assert_eq!((m.readable, m.name()), (false, &b""[..]));
        let contents = |line| parse_mapping(line).unwrap().contents();
        assert_eq!(contents(b"10-20 rw-p 0 0:0 0 [heap]"), Contents::Break);
        assert_eq!(contents(b"10-20 rw-p 0 0:0 0 [stack]"), Contents::MainStack);
        assert_eq!(contents(b"10-20 rw-p 0 0:0 0"), Contents::Anonymous);
        assert_eq!(contents(b"10-20 rw-p 0 0:0 0 [anon: glibc: malloc]"), Contents::Anonymous);
        assert_eq!(contents(b"10-20 r-xp 0 0:0 0 [vdso]"), Contents::Special);
        assert_eq!(contents(b"10-20 rw-p 0 0:0 9 /lib/a.so"), Contents::Data);
        assert_eq!(contents(b"10-20 r--p 0 0:0 9 /lib/a.so"), Contents::Code);
        assert_eq!(contents(b"10-20 rw-s 0 0:0 9 anon_inode:[io_uring]"), Contents::Other);
        assert!(parse_mapping(b"nonsense").is_none());
    }

    #[test]
    fn an_address_is_found_in_its_mapping() {
        let here = 0u8;
        let m = mapping_of(ptr::from_ref(&here).addr()).unwrap().unwrap();
        assert!(m.writable);
        assert!(mapping_of(8).unwrap().is_none());
        assert!(is_mapped(ptr::from_ref(&here).addr()) && !is_mapped(8));
        let (contents, on) = what_is_at(ptr::from_ref(&here).addr()).unwrap().unwrap();
        assert_eq!((contents, on.start), (Contents::Stack, m.start));
    }

    #[cfg(feature = "debug")]
    #[test]
    fn what_cannot_be_read_is_known() {
        use super::super::set_errno;
        use crate::os::{Memory, System};

        let here = 0u64;
        set_errno(7);
        assert!(is_readable(ptr::from_ref(&here).addr()));
        assert!(!is_readable(8) && !is_readable(1 << 63));
        let reserved = System.reserve(4096, 4096);
        assert!(is_mapped(reserved.addr()) && !is_readable(reserved.addr()));
        assert_eq!(super::super::errno(), 7);
        // SAFETY: reserved above, and no thread uses it.
        unsafe { System.release(reserved, 4096) };
    }

    #[cfg(feature = "debug")]
    #[test]
    fn files_are_new_and_for_this_user_alone() {
        use std::fs;
        use std::os::unix::fs::{MetadataExt, chown, symlink};

        let name = std::format!("heapwright-own-{}", process_id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        let path = |name: &str| folder.join(name);
        let named = |name: &str| std::format!("{}\0", path(name).display()).into_bytes();
        let file = named("file");
        assert!(append_file(&file, b"one", true) && append_file(&file, b"two", false));
        assert!(append_file(&file, b"three", true), "it stays as it is");
        assert_eq!(fs::read(path("file")).unwrap(), b"onetwo");
        assert_eq!(fs::metadata(path("file")).unwrap().mode() & 0o777, 0o600);
        symlink(path("file"), path("link")).unwrap();
        fs::write(path("first"), "").unwrap();
        fs::hard_link(path("first"), path("second")).unwrap();
        let pipe = named("pipe");
        // SAFETY: a path that ends with a zero.
        assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr().cast(), 0o666) }, 0);
        assert_eq!(append_whole(&named("none/x"), b"x", true), Err(NotAppended::Closed));
        assert_eq!(append_whole(b"/dev/full\0", b"x", false), Err(NotAppended::Closed));
        for wrong in ["link", "second", "pipe", "none/x"] {
            assert!(!append_file(&named(wrong), b"text", true), "{wrong}");
            assert!(!append_file(&named(wrong), b"text", false), "{wrong}");
        }
        for name in ["file", "link", "pipe"] {
            assert!(!save_file(&named(name), |_| false));
            symlink(path("first"), path(&std::format!("{name}.new"))).unwrap();
            assert!(save_file(&named(name), |file| write_all(file, b"new")), "{name}");
            let about = fs::symlink_metadata(path(name)).unwrap();
            assert!(about.is_file() && about.mode() & 0o777 == 0o600, "{name}");
            assert!(!path(&std::format!("{name}.new")).exists(), "{name}");
        }
        assert_eq!(fs::read(path("first")).unwrap(), b"");
        if user_id() == 0 {
            give_file(&file, 1, 2);
            assert!(append_file(&file, b"1", false), "it was not user 1's");
            give_file(&file, 0, 2);
            assert_eq!(fs::metadata(path("file")).unwrap().uid(), 2);
            assert!(!append_file(&file, b"2", false));
            give_file(&file, 2, 0);
            assert!(append_file(&file, b"3", false));
            chown(path("first"), Some(1), None).unwrap();
            fs::remove_file(path("second")).unwrap();
            assert!(!append_file(&named("first"), b"4", true));
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn both_ways_to_the_environment_agree() {
        let (mut a, mut b) = ([0; 4096], [0; 4096]);
        let x = environment(b"PATH", &mut a);
        assert_eq!(x, environment_from_kernel(b"PATH", &mut b));
        assert_eq!(a, b);
        assert_eq!(environment(b"NO_SUCH_VARIABLE_HERE", &mut a), None);
        assert_eq!(environment_from_kernel(b"NO_SUCH_VARIABLE_HERE", &mut a), None);
        assert_eq!(environment(b"PATH", &mut a[..1]), x);
        assert_eq!(environment_from_kernel(b"PATH", &mut b[..1]), x);
    }

    #[test]
    fn resident_bytes_are_plausible() {
        let (now, peak) = resident_bytes();
        assert!(now > 100 << 10 && peak >= now);
    }
}
