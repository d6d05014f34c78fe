//! What things cost, in nanoseconds, and the file in which that is kept, in TOML.
//!
//! Measured costs come from `policies calibrate`; two are taken from the library's source
//! ([`SPINS`], [`NAP_NS`]) and one is assumed: `cold_lines`.

use serde::{Deserialize, Serialize};

/// How often a waiter looks before it sleeps: as in the library's shared registry.
pub const SPINS: u32 = 100;

/// How long it sleeps before it looks for itself: likewise.
pub const NAP_NS: u64 = 1_000_000;

/// A slice is at least so many switches long. One that is over before its thread runs
/// would let nobody run.
pub const SLICE_SWITCHES: u64 = 8;

/// The costs, and where they come from.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// When it was measured.
    pub date: String,
    /// On what.
    pub machine: String,
    /// Load when it began: other work that disturbs.
    pub load: String,
    /// What things cost.
    pub costs: Costs,
}

/// What things cost, in nanoseconds.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Costs {
    /// A try that succeeds and its unlock, the line being there.
    pub try_unlock: u64,
    /// A line that another CPU had.
    pub line: u64,
    /// One look at a lock that is waited for, and a pause.
    pub look: u64,
    /// The clock.
    pub clock: u64,
    /// A system call that wakes nobody.
    pub wake_none: u64,
    /// One that wakes somebody, for the caller.
    pub wake_call: u64,
    /// From that call's beginning until the other runs, on a CPU that was idle.
    pub wake_latency: u64,
    /// From one thread to another on a CPU.
    pub switch: u64,
    /// How long a thread runs while another waits for its CPU.
    pub slice: u64,
    /// Lines beside the lock's that come with a cache another CPU used last. Assumed.
    pub cold_lines: u64,
    /// An allocation or a free, while the lock is held: the means of equal parts of the sorted
    /// measurements; each part is as likely.
    pub op: Vec<u64>,
    /// What a thread does between two of them, likewise.
    pub work: Vec<u64>,
}

/// The mean of a distribution, rounded down.
pub fn mean(parts: &[u64]) -> u64 {
    parts.iter().sum::<u64>() / (parts.len() as u64).max(1)
}

impl Calibration {
    /// The file's text.
    pub fn to_text(&self) -> Result<String, String> {
        let text = toml::to_string(self).map_err(|e| e.to_string())?;
        Ok(format!("# What things cost, in nanoseconds: made by `policies calibrate`.\n{text}"))
    }

    /// Reads the file's text; an error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let read: Self = toml::from_str(text).map_err(|e| e.message().to_owned())?;
        let costs = &read.costs;
        if [&costs.op, &costs.work].iter().any(|parts| parts.iter().all(|&ns| ns == 0)) {
            return Err("op and work must take time".to_owned());
        }
        if costs.look == 0 {
            return Err("look must be more than 0".to_owned());
        }
        if costs.slice < SLICE_SWITCHES * costs.switch.max(1) {
            return Err(format!("slice must be at least {SLICE_SWITCHES} times switch"));
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_what_is_wrong_is_said() {
        let (op, work) = (vec![10, 20], vec![100]);
        let costs = Costs { look: 3, line: 2, switch: 9, slice: 900, op, work, ..Costs::default() };
        let some = Calibration { machine: "two \"CPUs\"".into(), costs, ..Calibration::default() };
        let text = some.to_text().unwrap();
        assert_eq!(Calibration::parse(&text), Ok(some));
        for (from, to, what) in [
            ("\nline = 2", "\nlime = 2", "`lime`"),
            ("\nline = 2", "", "`line`"),
            ("op = [10, 20]", "op = []", "must take time"),
            ("slice = 900", "slice = 60", "slice must be at least 8 times switch"),
            ("look = 3", "look = 0", "look must be more than 0"),
            ("load = ", "lode = ", "`lode`"),
        ] {
            let said = Calibration::parse(&text.replace(from, to)).unwrap_err();
            assert!(said.contains(what), "{said}");
        }
    }
}
