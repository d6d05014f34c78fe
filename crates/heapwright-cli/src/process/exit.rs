//! Ends this process with a code, or by the signal that ended the program.
//!
//! A shell distinguishes `exit 143` from "killed by signal 15". Only in the second case, it prints
//! "Terminated". An interrupt stops a script's loop only if the command *died* of the signal. So if
//! a signal killed the program, this process dies of the signal, too, without a core file.

use super::{End, signals};

/// The exit code of a run that ended with 0, but whose output did not reach the user's file.
const NOT_WRITTEN: u8 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Code(u8),
    Signal(i32),
}

impl From<End> for Exit {
    fn from(end: End) -> Self {
        match end {
            End::Code(code) => Self::Code(code),
            End::Signal { number, .. } => Self::Signal(number),
        }
    }
}

impl Exit {
    /// Returns code 2 in place of code 0. A program's other end says more than a lost file.
    pub(crate) fn without_file(self) -> Self {
        if self == Self::Code(0) { Self::Code(NOT_WRITTEN) } else { self }
    }

    pub(crate) fn now(self) -> ! {
        match self {
            Self::Code(code) => std::process::exit(i32::from(code)),
            Self::Signal(number) => {
                forbid_core_dump();
                signals::die_of(number);
                // The first process of a container survives signals without a handler.
                std::process::exit(128 + number)
            }
        }
    }
}

/// Forbids a core file of this process, which would overwrite the program's.
fn forbid_core_dump() {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to a live rlimit. A failure only leaves a core file.
    unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const none) };
    // A core pattern that pipes into a program ignores the limit.
    // SAFETY: no pointers are involved.
    unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) };
}
