//! The verdict about a memory fault.

/// The verdict about a memory fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Verdict {
    /// The memory is not the debug heap's: the program's own handler runs.
    NotOurs = 0,
    /// The cause was removed: the program continues where it was.
    GoOn = 1,
    /// An error of the program, reported. Without a handler of its own, the program ends, even if
    /// it ignores the signal.
    Stop = 2,
    /// As [`Self::Stop`], and the guard of the address's page is lifted: the instruction may run
    /// once, and then the caller restores the guard. If the caller cannot, it restores the guard at
    /// once, and ends the program.
    Step = 3,
}
