//! Programs into which the library cannot be loaded: static ones, those of another machine, and
//! those that the kernel runs with other rights (the dynamic linker then ignores `LD_PRELOAD`).
//!
//! ```text
//!   path --> searched in PATH? --> file --> mode, owner --> "#!": its interpreter, again
//!                                             |               ELF: machine, an interpreter?
//!                                             set-uid, set-gid
//! ```
//!
//! The answer may be wrong, because of the mount or a race. So the program's record outweighs it.
//! Nothing here allocates, takes a lock or keeps much on the stack. Called by `programs`.

use super::programs::{each_byte, has, own_variables};
use super::table::ConstText;
use crate::errno;
use heapwright::limit::is_in_sandbox;
use heapwright_record::debug::UNLOADABLE;
use libc::{c_char, c_int};

/// A program's file.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) folder: c_int,
    /// If it is empty, `folder` is the file.
    pub(super) path: ConstText,
    /// Whether a name without a slash is searched in `PATH`.
    pub(super) is_searched: bool,
}

impl Place {
    pub(super) fn at(path: ConstText) -> Self {
        Self { folder: libc::AT_FDCWD, path, is_searched: false }
    }

    pub(super) fn of_file(file: c_int) -> Self {
        Self { folder: file, ..Self::at(c"".as_ptr()) }
    }
}

const STATIC: &str = UNLOADABLE[0];
const OTHER_RIGHTS: &str = UNLOADABLE[1];
const OTHER_MACHINE: &str = UNLOADABLE[2];

/// The most bytes of a path, and of a file's beginning.
const MOST: usize = 1024;
/// The most interpreters of scripts, as in the kernel.
const MOST_SCRIPTS: usize = 5;

type Bytes = [u8; MOST];

/// Returns why the library cannot be loaded, or `None` if it can, or if that is not known.
#[inline(never)]
pub(super) fn why(place: Place) -> Option<&'static str> {
    if is_in_sandbox() {
        return None;
    }
    let kept = errno::get();
    let mut path = [0; MOST];
    let why = copy(&mut path, 0, place.path).and_then(|length| {
        let is_name = !path[..length].contains(&b'/');
        if place.is_searched && is_name && !search(&mut path, place.path) {
            return None;
        }
        (0..MOST_SCRIPTS)
            .find_map(|_| why_once(place.folder, &mut path).unwrap_or(Some("")))
            .filter(|why| !why.is_empty())
    });
    errno::set(kept);
    why
}

/// Copies a string behind the first `at` bytes. Returns the new length, with room for a zero.
fn copy(path: &mut Bytes, at: usize, text: *const c_char) -> Option<usize> {
    let mut length = at;
    each_byte(text, MOST, &mut |byte| {
        let place = path.get_mut(length);
        length += 1;
        place.map(|place| *place = byte).is_some()
    });
    *path.get_mut(length)? = 0;
    Some(length)
}

/// Makes the path of the first program of that name in `PATH`.
fn search(path: &mut Bytes, name: ConstText) -> bool {
    let Some(mut folders) = variable(b"PATH=") else { return false };
    loop {
        let mut length = 0;
        let mut end = 0;
        each_byte(folders, usize::MAX, &mut |byte| {
            end = byte;
            if byte != b':'
                && let Some(place) = path.get_mut(length)
            {
                *place = byte;
            }
            length += usize::from(byte != b':');
            byte != b':'
        });
        // (An empty element is the current folder.)
        path[0] = if length == 0 { b'.' } else { path[0] };
        let slash = length.max(1);
        if let Some(place) = path.get_mut(slash) {
            *place = b'/';
            if copy(path, slash + 1, name).is_some() && can_be_executed(path) {
                return true;
            }
        }
        if end != b':' {
            return false;
        }
        folders = folders.wrapping_add(length + 1);
    }
}

fn variable(start: &[u8]) -> Option<*const c_char> {
    let variables = own_variables();
    if variables.is_null() {
        return None;
    }
    (0..)
        .map_while(|at| {
            // SAFETY: the C library's list ends with a null, at which this iterator ends.
            let variable = unsafe { variables.wrapping_add(at).read() };
            (!variable.is_null()).then_some(variable)
        })
        .find(|&variable| has(variable, start, b""))
        .map(|variable| variable.wrapping_add(start.len()))
}

fn can_be_executed(path: &Bytes) -> bool {
    const EXECUTES: c_int = libc::X_OK;
    // SAFETY: the path ends with a zero.
    unsafe { libc::syscall(libc::SYS_faccessat, libc::AT_FDCWD, path.as_ptr(), EXECUTES) == 0 }
}

/// Looks at one file. `Some(None)`: it is a script, and `path` is its interpreter now.
fn why_once(folder: c_int, path: &mut Bytes) -> Option<Option<&'static str>> {
    let mut about = core::mem::MaybeUninit::<libc::stat>::zeroed();
    let (name, flags) = (path.as_ptr(), libc::AT_EMPTY_PATH);
    // SAFETY: the path ends with a zero, and `about` has room for the result.
    let failed =
        unsafe { libc::syscall(libc::SYS_newfstatat, folder, name, about.as_mut_ptr(), flags) };
    // SAFETY: all zeros is a valid struct, and so is the call's result.
    let about = unsafe { about.assume_init() };
    if failed != 0 || about.st_mode & libc::S_IFMT != libc::S_IFREG {
        return None;
    }
    let mut bytes = [0; MOST];
    let length = read(folder, path, &mut bytes);
    if let Some(line) = bytes[..length].strip_prefix(b"#!") {
        let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii();
        let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len()).min(MOST - 1);
        path[..end].copy_from_slice(&line[..end]);
        path[end] = 0;
        return Some(None);
    }
    // SAFETY: the call has no preconditions.
    let user = unsafe { libc::getuid() };
    // SAFETY: the call has no preconditions.
    let group = unsafe { libc::getgid() };
    let by_group = libc::S_ISGID | libc::S_IXGRP;
    if about.st_mode & libc::S_ISUID != 0 && about.st_uid != user
        || about.st_mode & by_group == by_group && about.st_gid != group
    {
        return Some(Some(OTHER_RIGHTS));
    }
    elf(&bytes[..length]).map(Some)
}

/// Reads a file's beginning. Returns its length, 0 if the file cannot be read.
fn read(folder: c_int, path: &Bytes, bytes: &mut Bytes) -> usize {
    let flags = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK;
    let is_open = path[0] == 0;
    let file = if is_open {
        folder
    } else {
        // SAFETY: the path ends with a zero.
        unsafe { libc::syscall(libc::SYS_openat, folder, path.as_ptr(), flags) as c_int }
    };
    // SAFETY: the kernel writes at most `MOST` bytes there, and refuses a file that is not open.
    let got = unsafe { libc::syscall(libc::SYS_pread64, file, bytes.as_mut_ptr(), MOST, 0usize) };
    if !is_open && file >= 0 {
        // SAFETY: this function opened the file.
        unsafe { libc::syscall(libc::SYS_close, file) };
    }
    usize::try_from(got).unwrap_or(0)
}

/// Returns why the library cannot be loaded into an ELF file with this beginning.
fn elf(bytes: &[u8]) -> Option<&'static str> {
    const MACHINE: u16 = if cfg!(target_arch = "x86_64") { 62 } else { 183 };
    const INTERPRETER: [u8; 4] = 3u32.to_ne_bytes();
    let half = |at: usize| Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    if bytes.get(..4)? != b"\x7fELF" {
        return None;
    }
    // (The class and the order of bytes are those of 64-bit machines with the low byte first.)
    if bytes.get(4..6)? != [2, 1] || half(18)? != MACHINE {
        return Some(OTHER_MACHINE);
    }
    let start = usize::try_from(u64::from_ne_bytes(bytes.get(32..40)?.try_into().ok()?)).ok()?;
    let (size, count) = (usize::from(half(54)?), usize::from(half(56)?));
    for at in 0..count {
        let kind = bytes.get(start.checked_add(at * size)?..)?.get(..4)?;
        if kind == INTERPRETER {
            return None;
        }
    }
    Some(STATIC)
}
