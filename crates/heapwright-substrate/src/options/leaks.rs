//! Options of leak checks: when they run, and what they report.

use super::Wrong;

/// The groups of still reachable blocks that are reported one by one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reported {
    /// None: they are only counted.
    None,
    /// The largest groups.
    Top,
    /// All groups.
    All,
}

/// The settings of leak checks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Leaks {
    /// A check when the process ends.
    pub at_exit: bool,
    /// The signal that starts a check; 0: none.
    pub signal: u8,
    /// Counts during the run, to find growth.
    pub growth: bool,
    /// The groups of reachable blocks that are reported one by one.
    pub reachable: Reported,
}

impl Leaks {
    pub(super) const DEFAULT: Self =
        Self { at_exit: false, signal: 0, growth: false, reachable: Reported::Top };
}

/// Sets the option `name`. `None`: it is not one of these.
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

/// Signals that a program may not need, with Linux's numbers on x86-64 and aarch64. Other systems
/// have no leak checks.
const SIGNALS: [(&[u8], u8); 7] = [
    (b"USR1", 10),
    (b"USR2", 12),
    (b"HUP", 1),
    (b"QUIT", 3),
    (b"WINCH", 28),
    (b"PWR", 30),
    (b"PROF", 27),
];

/// The number of such a signal.
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
