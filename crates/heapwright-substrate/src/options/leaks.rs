//! When the debug heap looks for leaks, and what it says of them.

use super::Wrong;

/// Which groups of still reachable blocks are reported one by one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reported {
    /// None: all are counted.
    None,
    /// The largest.
    Top,
    /// All.
    All,
}

/// What is looked for, and when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Leaks {
    /// A check when the process ends.
    pub at_exit: bool,
    /// The signal that asks for one; 0: none.
    pub signal: u8,
    /// Counts while it runs, for what grows.
    pub growth: bool,
    /// Which reachable blocks are reported one by one.
    pub reachable: Reported,
}

impl Leaks {
    pub(super) const DEFAULT: Self =
        Self { at_exit: false, signal: 0, growth: false, reachable: Reported::Top };
}

/// Sets the option `name`. `None`: there is none of this name.
pub(super) fn set(leaks: &mut Leaks, name: &[u8], value: &[u8]) -> Option<Result<(), Wrong>> {
    match (name, value) {
        (b"leaks", b"exit") => leaks.at_exit = true,
        (b"leaks", b"off") => leaks.at_exit = false,
        (b"leaks", _) => return Some(Err(Wrong::Value("must be exit or off"))),
        (b"growth", b"on") => leaks.growth = true,
        (b"growth", b"off") => leaks.growth = false,
        (b"growth", _) => return Some(Err(Wrong::Value("must be on or off"))),
        (b"reachable", b"none") => leaks.reachable = Reported::None,
        (b"reachable", b"top") => leaks.reachable = Reported::Top,
        (b"reachable", b"all") => leaks.reachable = Reported::All,
        (b"reachable", _) => return Some(Err(Wrong::Value("must be none, top or all"))),
        (b"leak_signal", value) => match signal(value) {
            Some(number) => leaks.signal = number,
            None => {
                let wrong =
                    "must be USR1, USR2, HUP, QUIT, WINCH, PWR, PROF, or a number from 34 to 64";
                return Some(Err(Wrong::Value(wrong)));
            }
        },
        _ => return None,
    }
    Some(Ok(()))
}

/// The signals that a program may do without, with Linux's numbers on x86-64 and aarch64. Elsewhere
/// nothing looks for leaks.
const SIGNALS: [(&[u8], u8); 7] = [
    (b"USR1", 10),
    (b"USR2", 12),
    (b"HUP", 1),
    (b"QUIT", 3),
    (b"WINCH", 28),
    (b"PWR", 30),
    (b"PROF", 27),
];

/// The number of a signal that a program may do without.
fn signal(value: &[u8]) -> Option<u8> {
    let bare = value.strip_prefix(b"SIG").unwrap_or(value);
    if let Some(&(_, number)) = SIGNALS.iter().find(|(name, _)| *name == bare) {
        return Some(number);
    }
    super::number(value).filter(|number| (34..=64).contains(number)).map(|number| number as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_names_or_numbers() {
        assert_eq!(signal(b"USR2"), Some(12));
        assert_eq!(signal(b"SIGUSR1"), Some(10));
        assert_eq!((signal(b"40"), signal(b"33"), signal(b"11")), (Some(40), None, None));
        assert_eq!((signal(b""), signal(b"KILL")), (None, None));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn numbers_are_the_systems() {
        use libc::{SIGHUP, SIGPROF, SIGPWR, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH};
        let system = [SIGUSR1, SIGUSR2, SIGHUP, SIGQUIT, SIGWINCH, SIGPWR, SIGPROF];
        assert_eq!(SIGNALS.map(|(_, number)| i32::from(number)), system);
    }
}
