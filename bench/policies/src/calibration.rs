//! The costs of operations in nanoseconds, and the TOML file that keeps them.
//!
//! Measured costs come from `policies calibrate`. [`SPINS`] and [`NAP_NS`] are taken from the
//! library's source, and `cold_lines` is assumed.

use serde::{Deserialize, Serialize};

/// The looks of a waiter before it sleeps: as in the library's shared registry.
pub const SPINS: u32 = 100;

/// The longest sleep of a waiter between two looks, as in the library's shared registry.
pub const NAP_NS: u64 = 1_000_000;

/// The least slice, in switches. In a slice as long as a switch, no thread would run.
pub const SLICE_SWITCHES: u64 = 8;

/// The costs and their origin.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// The time of the measurement.
    pub date: String,
    /// The machine.
    pub machine: String,
    /// The load at the start: other work that disturbs.
    pub load: String,
    /// The costs.
    pub costs: Costs,
}

/// The costs, in nanoseconds.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Costs {
    /// A successful try and its unlock, with the line in the cache.
    pub try_unlock: u64,
    /// The fetch of a line that another CPU had.
    pub line: u64,
    /// One look at a lock that a thread waits for, and a pause.
    pub look: u64,
    /// Reading the clock.
    pub clock: u64,
    /// A system call that wakes no thread.
    pub wake_none: u64,
    /// A system call that wakes a thread, for the caller.
    pub wake_call: u64,
    /// The time from that call until the other thread runs, on an idle CPU.
    pub wake_latency: u64,
    /// A switch from one thread to another on a CPU.
    pub switch: u64,
    /// The time for which a thread runs while another waits for its CPU.
    pub slice: u64,
    /// Lines beside the lock's that come with a cache that another CPU used last. Assumed.
    pub cold_lines: u64,
    /// An allocation or a free, which holds the lock: the means of equal parts of the sorted
    /// measurements. Each part is equally likely.
    pub op: Vec<u64>,
    /// The program's work between two of these operations: means as in `op`.
    pub work: Vec<u64>,
}

/// Returns the mean of a distribution, rounded down.
pub fn mean(parts: &[u64]) -> u64 {
    parts.iter().sum::<u64>() / (parts.len() as u64).max(1)
}

impl Calibration {
    /// Returns the file's text.
    pub fn to_text(&self) -> Result<String, String> {
        let text = toml::to_string(self).map_err(|e| e.to_string())?;
        Ok(format!("# What things cost, in nanoseconds: made by `policies calibrate`.\n{text}"))
    }

    /// Reads the file's text. An error names the fault.
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
