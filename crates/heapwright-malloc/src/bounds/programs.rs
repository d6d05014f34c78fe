//! Calls that start a program: `execve`, `posix_spawn`, `system` and their kin, in
//! `libheapwright-check.so`.
//!
//! Their paths and lists are verified as other calls of the kernel are (`kernel`). A program that
//! does not get `LD_PRELOAD` and `HEAPWRIGHT` runs unchecked. The record then gets a note with its
//! process and its name, so that the report does not look clean:
//!
//! ```text
//!   execve, ...           the note precedes the call; a second note revokes it if the call
//!                         returns; the same for `syscall` with the number of `execve`
//!   posix_spawn, popen    the note follows the call, if it succeeded
//!   system                the note precedes the call, which waits for the program
//! ```
//!
//! The new program's variables are not changed, even if its `HEAPWRIGHT` has other options. The
//! library may still be unloadable into a program that gets them (`unloadable`). A note names that
//! program, too. Each other child should have a record: its parent notes it (also `copies`).
//!
//! Nothing here allocates or takes a lock: children of `vfork` make these calls.

use super::calls::{Strings, Word};
use super::kernel::{checked, is_there};
use super::table::{ConstText, To};
use super::unloadable::{self, Place};
use super::{Check, Room, copies};
use core::cell::Cell;
use heapwright::process::{self, note_not_started, note_process, note_unchecked};
use heapwright_record::debug::{CHILD, LEFT_OUT, NOT_LOADED};
use libc::{c_char, c_int, c_long};

/// The most bytes of a name or command in a note.
const MOST_NAME: usize = 200;
/// The most bytes of a variable that are searched for the library's name.
const MOST_VALUE: usize = 4096;
const PAGE: usize = 4096;

unsafe extern "C" {
    static environ: Strings;
}

pub(super) fn own_variables() -> Strings {
    // SAFETY: the C library's word. A thread that changes it meanwhile races with the call itself.
    unsafe { (&raw const environ).read() }
}

/// The process of a program that a note names, or 0 if the process is not known.
#[derive(Clone, Copy)]
pub(super) struct Started(u32);

/// Calls `visit` with the bytes of a string, at most `most`. Stops at the end, at a byte that
/// cannot be read, or if `visit` returns false.
pub(super) fn each_byte(text: *const c_char, most: usize, visit: &mut dyn FnMut(u8) -> bool) {
    for at in 0..most {
        let place = text.cast::<u8>().wrapping_add(at);
        if (at == 0 || place.addr().is_multiple_of(PAGE)) && !is_there(place, 1) {
            return;
        }
        // SAFETY: the byte can be read, and the kernel reads it in this call, too.
        let byte = unsafe { place.read() };
        if byte == 0 || !visit(byte) {
            return;
        }
    }
}

/// Whether a string begins with `start`, and contains `part` behind it.
pub(super) fn has(text: *const c_char, start: &[u8], part: &[u8]) -> bool {
    let (mut at, mut matched) = (0, 0);
    each_byte(text, MOST_VALUE, &mut |byte| {
        if at < start.len() {
            let goes_on = start[at] == byte;
            at += usize::from(goes_on);
            return goes_on;
        }
        if matched < part.len() {
            let goes_on = part[matched] == byte;
            matched = if goes_on { matched + 1 } else { usize::from(part[0] == byte) };
        }
        matched < part.len()
    });
    at == start.len() && matched == part.len()
}

/// How a program starts with a list of environment variables.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Carries {
    /// The library is not loaded, or gets no options.
    Nothing,
    /// The library makes no record.
    NoRecord,
    Everything,
}

fn carried_by(variables: Strings) -> Carries {
    let (mut preloads, mut has_options, mut records) = (false, false, false);
    for at in 0.. {
        let place = variables.wrapping_add(at);
        if (at == 0 || place.addr() % PAGE < size_of::<ConstText>())
            && !is_there(place, size_of::<ConstText>())
        {
            break;
        }
        // SAFETY: the pointer can be read, and the kernel reads it in this call, too.
        let variable = unsafe { place.read_unaligned() };
        if variable.is_null() || preloads && has_options {
            break;
        }
        preloads |= has(variable, b"LD_PRELOAD=", b"heapwright");
        if has(variable, b"HEAPWRIGHT=", b"") {
            (has_options, records) = (true, has(variable, b"HEAPWRIGHT=", b"record="));
        }
    }
    match (preloads && has_options, records) {
        (false, _) => Carries::Nothing,
        (true, false) => Carries::NoRecord,
        (true, true) => Carries::Everything,
    }
}

/// Notes how a program starts: without the library, without a record, or in a new child. `before`
/// precedes the name, and `place` is the program's file, if it is known.
fn note(
    process: u32,
    before: &[u8],
    name: ConstText,
    variables: Strings,
    place: Option<Place>,
) -> Option<Started> {
    let mut text = [0; MOST_NAME];
    let mut length = before.len().min(MOST_NAME);
    text[..length].copy_from_slice(&before[..length]);
    each_byte(name, MOST_NAME - length, &mut |byte| {
        text[length] = byte;
        length += 1;
        true
    });
    let program = &text[..length];
    match carried_by(variables) {
        Carries::Nothing => note_unchecked(process, program),
        Carries::NoRecord => note_process(LEFT_OUT, process, &[]),
        Carries::Everything => match place.and_then(unloadable::why) {
            Some(why) => note_process(NOT_LOADED, process, &[why.as_bytes(), program]),
            // A child of `fork` has a note already. A child of `vfork` has none.
            None if process == 0 || process == process::id() && process::is_original_process() => {
                return None;
            }
            None if copies::shares_numbers() => note_process(CHILD, process, &[program]),
            None => return None,
        },
    }
    Some(Started(process))
}

/// Takes the note back: the call has returned, so the program has not started.
pub(super) fn returned(started: Option<Started>) {
    if let Some(Started(process)) = started {
        note_not_started(process);
    }
}

pub(super) fn started_by(number: c_long, name: Word, variables: Word) -> Option<Started> {
    if number != libc::SYS_execve {
        return None;
    }
    let name = core::ptr::with_exposed_provenance(name);
    let variables = core::ptr::with_exposed_provenance(variables);
    note(process::id(), b"", name, variables, Some(Place::at(name)))
}

fn passed<T: Copy>(room: Option<&Room>, argument: T) -> T {
    room.map_or(argument, |room| room.pass(argument))
}

/// Makes a call that replaces this program by another one.
fn becoming(
    function: &'static str,
    name: ConstText,
    words: Strings,
    variables: Option<Strings>,
    place: Place,
    call: impl Fn(Option<&Room>) -> c_int,
) -> c_int {
    let given = variables.unwrap_or_else(own_variables);
    let started = note(process::id(), b"", name, given, Some(place));
    let look = |check: Check<'_, true>| {
        check.names(name);
        check.strings(words);
        if let Some(variables) = variables {
            check.strings(variables);
        }
    };
    let result = checked(function, look, call);
    returned(started);
    result
}

/// Functions that replace this program by another one. The path is the first argument.
macro_rules! becoming {
    ($($name:ident($path:ident, $words:ident $(, $variables:ident)?);)*) => { $(
        /// # Safety
        ///
        /// As the C library's.
        pub(super) unsafe fn $name<const READS: bool>(
            _: Check<'_, READS>,
            real: unsafe extern "C" fn(ConstText, Strings $(, becoming!(@ $variables))?) -> c_int,
            $path: ConstText,
            $words: Strings
            $(, $variables: Strings)?
        ) -> c_int {
            let variables = [$($variables)?].first().copied();
            let name = stringify!($name);
            // (`execvp` and `execvpe` search the program.)
            let place = Place { is_searched: name.contains("vp"), ..Place::at($path) };
            becoming(name, $path, $words, variables, place, |room| {
                let (path, words) = (passed(room, $path), passed(room, $words));
                $(let $variables = passed(room, $variables);)?
                // SAFETY: as the caller promises.
                unsafe { real(path, words $(, $variables)?) }
            })
        }
    )* };
    (@ $variables:ident) => { Strings };
}

becoming! {
    execve(path, words, variables);
    execv(path, words);
    execvp(path, words);
    execvpe(path, words, variables);
}

/// # Safety
///
/// As the C library's.
pub(super) unsafe fn fexecve<const READS: bool>(
    _: Check<'_, READS>,
    real: unsafe extern "C" fn(c_int, Strings, Strings) -> c_int,
    file: c_int,
    words: Strings,
    variables: Strings,
) -> c_int {
    let call = |room: Option<&Room>| {
        // SAFETY: as the caller promises.
        unsafe { real(file, passed(room, words), passed(room, variables)) }
    };
    let name = c"an open file".as_ptr();
    becoming("fexecve", name, words, Some(variables), Place::of_file(file), call)
}

/// # Safety
///
/// As the C library's.
pub(super) unsafe fn execveat<const READS: bool>(
    _: Check<'_, READS>,
    real: unsafe extern "C" fn(Word, ConstText, Strings, Strings, Word) -> c_int,
    folder: Word,
    path: ConstText,
    words: Strings,
    variables: Strings,
    flags: Word,
) -> c_int {
    let place = Place { folder: folder as c_int, ..Place::at(path) };
    becoming("execveat", path, words, Some(variables), place, |room| {
        let (words, variables) = (passed(room, words), passed(room, variables));
        // SAFETY: as the caller promises.
        unsafe { real(folder, passed(room, path), words, variables, flags) }
    })
}

type Spawn = unsafe extern "C" fn(*mut c_int, ConstText, Word, Word, Strings, Strings) -> c_int;

/// # Safety
///
/// As the C library's.
#[allow(clippy::too_many_arguments, reason = "the C library's, and its name")]
unsafe fn spawn(
    function: &'static str,
    real: Spawn,
    process: *mut c_int,
    path: ConstText,
    actions: Word,
    attributes: Word,
    words: Strings,
    variables: Strings,
) -> c_int {
    let look = |check: Check<'_, true>| {
        check.fills(process);
        check.names(path);
        check.strings(words);
        check.strings(variables);
    };
    let (mut number, child) = (0, Cell::new(0));
    let to = if process.is_null() { &raw mut number } else { process };
    let result = checked(function, look, |room| {
        let (path, place) = (passed(room, path), passed(room, to));
        let (words, variables) = (passed(room, words), passed(room, variables));
        // SAFETY: as the caller promises; the function writes one number.
        let result = unsafe { real(place, path, actions, attributes, words, variables) };
        if result == 0 && room.is_none() {
            // SAFETY: the function has written the number there.
            child.set(unsafe { to.read_unaligned() });
        }
        result
    });
    if result == 0 {
        let place = Place { is_searched: function == "posix_spawnp", ..Place::at(path) };
        note(child.get().unsigned_abs(), b"", path, variables, Some(place));
    }
    result
}

macro_rules! spawning {
    ($($name:ident)*) => { $(
        /// # Safety
        ///
        /// As the C library's.
        #[allow(clippy::too_many_arguments, reason = "the C library's, and what is done with them")]
        pub(super) unsafe fn $name<const READS: bool>(
            _: Check<'_, READS>,
            real: Spawn,
            process: *mut c_int,
            path: ConstText,
            actions: Word,
            attributes: Word,
            words: Strings,
            variables: Strings,
        ) -> c_int {
            let name = stringify!($name);
            // SAFETY: as the caller promises.
            unsafe { spawn(name, real, process, path, actions, attributes, words, variables) }
        }
    )* };
}

spawning! { posix_spawn posix_spawnp }

/// # Safety
///
/// As the C library's.
pub(super) unsafe fn system<const READS: bool>(
    _: Check<'_, READS>,
    real: unsafe extern "C" fn(ConstText) -> c_int,
    command: ConstText,
) -> c_int {
    // A null command only asks for a shell.
    if !command.is_null() {
        note(0, b"sh -c ", command, own_variables(), None);
    }
    checked(
        "system",
        |check| check.names(command),
        |room| {
            // SAFETY: as the caller promises.
            unsafe { real(passed(room, command)) }
        },
    )
}

/// # Safety
///
/// As the C library's.
pub(super) unsafe fn popen<const READS: bool>(
    _: Check<'_, READS>,
    real: unsafe extern "C" fn(ConstText, ConstText) -> To,
    command: ConstText,
    mode: ConstText,
) -> To {
    let look = |check: Check<'_, true>| {
        check.names(command);
        check.names(mode);
    };
    let stream = checked("popen", look, |room| {
        // SAFETY: as the caller promises.
        unsafe { real(passed(room, command), passed(room, mode)) }
    });
    if !stream.is_null() {
        note(0, b"sh -c ", command, own_variables(), None);
    }
    stream
}
