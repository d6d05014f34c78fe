//! Options of leak checks: their occasions and their reports.

use super::Wrong;

/// The groups of still reachable blocks that are reported one by one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reported {
    /// No group: reachable blocks are only counted.
    None,
    /// The largest groups.
    Top,
    /// All groups.
    All,
}

/// The shapes of blocks that a pointer to their middle keeps reachable; see `heapwright::options`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Heuristics {
    /// The pointer leads to one of the first 64 bytes.
    pub near: bool,
    /// The pointer leads to characters behind a length, a capacity and a count.
    pub std_string: bool,
    /// The pointer leads to bytes behind their number.
    pub length64: bool,
    /// The pointer leads to elements behind their number.
    pub new_array: bool,
    /// The pointer leads to a second vtable.
    pub multiple_inheritance: bool,
}

impl Heuristics {
    const ALL: Self = Self {
        near: true,
        std_string: true,
        length64: true,
        new_array: true,
        multiple_inheritance: true,
    };
    const NONE: Self = Self {
        near: false,
        std_string: false,
        length64: false,
        new_array: false,
        multiple_inheritance: false,
    };

    /// Parses Memcheck's names, joined by `+`.
    fn parse(text: &[u8]) -> Option<Self> {
        let mut chosen = Self::NONE;
        for name in text.split(|&byte| byte == b'+') {
            match name {
                b"all" => chosen = Self::ALL,
                b"none" => {}
                b"stdstring" => chosen.std_string = true,
                b"length64" => chosen.length64 = true,
                b"newarray" => chosen.new_array = true,
                b"multipleinheritance" => chosen.multiple_inheritance = true,
                _ => return None,
            }
        }
        Some(chosen)
    }
}

/// The settings of leak checks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Leaks {
    /// Whether a check runs when the process ends.
    pub at_exit: bool,
    /// The signal that starts a check; 0: none.
    pub signal: u8,
    /// Whether blocks are counted during the run, to find growth.
    pub growth: bool,
    /// The groups of reachable blocks that are reported one by one.
    pub reachable: Reported,
    /// The shapes of blocks that a pointer to their middle keeps reachable.
    pub heuristics: Heuristics,
}

impl Leaks {
    pub(super) const DEFAULT: Self = Self {
        at_exit: false,
        signal: 0,
        growth: false,
        reachable: Reported::Top,
        heuristics: Heuristics::ALL,
    };
}

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
        (b"heuristics", value) => match Heuristics::parse(value) {
            Some(chosen) => leaks.heuristics = chosen,
            None => {
                let wrong = "must be all, none, or some of stdstring, length64, newarray and \
                             multipleinheritance, joined by +";
                return Some(Err(Wrong::Value(wrong)));
            }
        },
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

/// Linux's numbers on x86-64 and aarch64. Other systems have no leak checks.
const SIGNALS: [(&[u8], u8); 7] = [
    (b"USR1", 10),
    (b"USR2", 12),
    (b"HUP", 1),
    (b"QUIT", 3),
    (b"WINCH", 28),
    (b"PWR", 30),
    (b"PROF", 27),
];

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

    #[test]
    fn heuristics_have_memchecks_names() {
        let near = |text: &[u8]| Heuristics::parse(text).map(|chosen| chosen.near);
        assert_eq!(
            (near(b"all"), near(b"none"), near(b"newarray")),
            (Some(true), Some(false), Some(false))
        );
        let two = Heuristics { length64: true, new_array: true, ..Heuristics::NONE };
        assert_eq!(Heuristics::parse(b"newarray+length64"), Some(two));
        assert_eq!((Heuristics::parse(b""), Heuristics::parse(b"newarray+x")), (None, None));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn numbers_are_the_systems() {
        use libc::{SIGHUP, SIGPROF, SIGPWR, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH};
        let system = [SIGUSR1, SIGUSR2, SIGHUP, SIGQUIT, SIGWINCH, SIGPWR, SIGPROF];
        assert_eq!(SIGNALS.map(|(_, number)| i32::from(number)), system);
    }
}
