//! What is to become of a fault in memory that the C layer caught.

/// What is to become of a fault in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Verdict {
    /// The memory is not the debug heap's: the program's own handler is called,
    /// as if the debug heap had not looked.
    NotOurs = 0,
    /// The cause was removed: the program goes on where it was.
    GoOn = 1,
    /// An error of the program, which was reported. Its own handler may have its
    /// word; without one, the program ends, even where it ignores the signal.
    Stop = 2,
    /// The same, and the guard of the address's page is lifted: the instruction may be made once,
    /// and then the guard is to be put back. Who cannot see to that puts it back at once, and ends
    /// the program.
    Step = 3,
}
