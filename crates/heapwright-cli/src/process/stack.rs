//! Runs the command on a larger stack if the user's limit (`ulimit -s`) leaves it too little.
//!
//! The program inherits the limit; only this process uses another stack. The other thread handles
//! the signals, because the first one blocks them all.

use super::{Exit, signals};
use std::thread;

/// The bytes of stack that suffice for every subcommand.
const ENOUGH: usize = 8 << 20;
/// With less than this the command gets a thread of its own.
const LITTLE: libc::rlim_t = 4 << 20;

/// The exit code without memory for the stack.
const FAILED: u8 = 125;

pub(crate) fn with_enough(run: fn() -> Exit) -> Exit {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: 0 };
    // SAFETY: the limit is writable. After a failure it is without end.
    unsafe { libc::getrlimit(libc::RLIMIT_STACK, &raw mut limit) };
    if limit.rlim_cur >= LITTLE {
        return run();
    }
    let mask = signals::block_all();
    let there = move || {
        mask.restore();
        run()
    };
    match thread::Builder::new().stack_size(ENOUGH).spawn(there).map(thread::JoinHandle::join) {
        Ok(Ok(exit)) => exit,
        // The thread has printed its panic; this is the exit code of one.
        Ok(Err(_)) => Exit::Code(101),
        Err(error) => {
            eprintln!("heapwright: no memory for a stack beyond the limit (ulimit -s): {error}");
            Exit::Code(FAILED)
        }
    }
}
