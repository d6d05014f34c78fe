//! Ending this process: with a code, or by a signal as the program did.
//!
//! A shell distinguishes `exit 137` from "killed by signal 9": only for the second it prints
//! "Terminated" or "Segmentation fault", and an interrupt stops a script's loop only if the command
//! *died* of it. So if the program died of a signal, we die of the same one, without a core file of
//! our own memory.

use super::{End, signals};

/// How this command is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// With an exit code.
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
    /// Ends this process.
    pub(crate) fn now(self) -> ! {
        match self {
            Self::Code(code) => std::process::exit(i32::from(code)),
            Self::Signal(number) => {
                forbid_core_dump();
                signals::die_of(number);
                // Still here: the first process of a container is not killed
                // by signals it has no handler for. Say it the shells' way.
                std::process::exit(128 + number)
            }
        }
    }
}

/// The program has left its own core file, if any; ours would overwrite it.
fn forbid_core_dump() {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to a live rlimit; failure only leaves a core file.
    unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const none) };
    // A core pattern that pipes into a program does not heed the limit.
    // SAFETY: no pointers are involved.
    unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) };
}
