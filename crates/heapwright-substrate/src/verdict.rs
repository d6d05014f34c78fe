//! The verdict of the debug heap about a memory fault.

/// The verdict about a memory fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Verdict {
    /// The memory is not the debug heap's, so the program's own handler must run.
    NotOurs = 0,
    /// The cause was removed, so the program continues where it was.
    GoOn = 1,
    /// The fault is an error of the program, and was reported. If the program has no handler, it
    /// must end, even if it ignores the signal.
    Stop = 2,
    /// As [`Self::Stop`], but the guard of the address's page was removed. The caller lets the
    /// instruction run once, and restores the guard. If it cannot do so, it restores the guard at
    /// once, and ends the program.
    Step = 3,
}
