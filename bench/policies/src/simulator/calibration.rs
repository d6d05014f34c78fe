//! What things cost, in nanoseconds, and the file in which that is kept.
//!
//! ```text
//!   # comment
//!   date = "2026-11-22"           where it comes from: date, machine, load
//!   line = 60                     a cost
//!   op = [20, 25, 31, ...]        a distribution: the means of equal parts of the
//!                                 sorted measurements; each part is as likely
//! ```
//!
//! The file is TOML. Measured costs come from `policies calibrate`; two
//! are not measured but taken from the library's source ([`SPINS`], [`NAP_NS`]) and one
//! is assumed: `cold_lines`, how many more lines than the lock's must be fetched by a
//! CPU that finds a cache which another one used last. Each stands in the file all the
//! same, for a sensitivity range needs it.

use std::fmt::Write as _;

use serde::Deserialize;

/// How often a waiter looks before it sleeps: as in the library's shared registry.
pub const SPINS: u32 = 100;

/// How long it sleeps before it looks for itself: likewise.
pub const NAP_NS: u64 = 1_000_000;

/// A slice is at least so many switches long. One that is over before its thread runs
/// would let nobody run; and halved and doubled it must still be longer.
pub const SLICE_SWITCHES: u64 = 8;

/// The costs, and where they come from.
#[derive(Clone, PartialEq, Eq, Debug)]
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
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
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
    /// An allocation or a free, while the lock is held.
    pub op: Vec<u64>,
    /// What a thread does between two of them.
    pub work: Vec<u64>,
}

/// The names of single numbers, with their places.
macro_rules! numbers {
    ($($name:ident $comment:literal;)*) => {
        const NUMBERS: &[(&str, &str)] = &[$((stringify!($name), $comment)),*];

        fn number<'a>(costs: &'a mut Costs, name: &str) -> Option<&'a mut u64> {
            match name {
                $(stringify!($name) => Some(&mut costs.$name),)*
                _ => None,
            }
        }
    };
}

numbers! {
    try_unlock "a try and an unlock, nobody else there";
    line "a cache line that another CPU had";
    look "one look while waiting, with a pause";
    clock "reading the clock";
    wake_none "a system call that wakes nobody";
    wake_call "a system call that wakes somebody, for the caller";
    wake_latency "from that call until the other one runs";
    switch "from one thread to another on a CPU";
    slice "how long a thread runs while another waits for its CPU";
    cold_lines "lines that come with a cache another CPU used last (a number, assumed)";
}

/// All costs that can be halved and doubled.
pub const ADJUSTABLE: &[&str] = &[
    "op",
    "work",
    "try_unlock",
    "line",
    "look",
    "clock",
    "wake_none",
    "wake_call",
    "wake_latency",
    "switch",
    "slice",
    "cold_lines",
];

impl Costs {
    /// The same with one cost times `up`, through `down`. False if there is none of that
    /// name.
    pub fn scale(&mut self, name: &str, up: u64, down: u64) -> bool {
        let scaled = |ns: &mut u64| *ns = *ns * up / down;
        match name {
            "op" => self.op.iter_mut().for_each(scaled),
            "work" => self.work.iter_mut().for_each(scaled),
            _ => match number(self, name) {
                Some(ns) => scaled(ns),
                None => return false,
            },
        }
        true
    }
}

/// The mean of a distribution, rounded down.
pub fn mean(parts: &[u64]) -> u64 {
    parts.iter().sum::<u64>() / (parts.len() as u64).max(1)
}

impl Calibration {
    /// The file's text.
    pub fn to_text(&self) -> String {
        let mut costs = self.costs.clone();
        let mut text = String::from(
            "# What things cost, in nanoseconds: made by `policies calibrate` (ci/policies.sh calibrate).\n\n",
        );
        for (name, value) in
            [("date", &self.date), ("machine", &self.machine), ("load", &self.load)]
        {
            let _ = writeln!(text, "{name} = \"{}\"", value.replace(['"', '\\'], "'"));
        }
        text.push('\n');
        for (name, comment) in NUMBERS {
            let value = number(&mut costs, name).map_or(0, |value| *value);
            let _ = writeln!(text, "{:<30}# {comment}", format!("{name} = {value}"));
        }
        let lists = [
            ("op", &costs.op, "an allocation or a free, in the lock"),
            ("work", &costs.work, "between two of them"),
        ];
        for (name, parts, comment) in lists {
            let _ = writeln!(text, "\n# {comment}: mean {}", mean(parts));
            let parts: Vec<String> = parts.iter().map(u64::to_string).collect();
            let _ = writeln!(text, "{name} = [{}]", parts.join(", "));
        }
        text
    }

    /// Reads the file's text; an error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut table: toml::Table = toml::from_str(text).map_err(|e| e.to_string())?;
        let mut word = |name: &str| match table.remove(name) {
            Some(toml::Value::String(word)) => Ok(word),
            _ => Err(format!("it lacks {name}, a text")),
        };
        let (date, machine, load) = (word("date")?, word("machine")?, word("load")?);
        let costs: Costs = table.try_into().map_err(|e: toml::de::Error| e.message().to_owned())?;
        let read = Self { date, machine, load, costs };
        if [&read.costs.op, &read.costs.work].iter().any(|parts| parts.iter().all(|&ns| ns == 0)) {
            return Err("op and work must take time".to_owned());
        }
        let mut costs = read.costs.clone();
        let singles = NUMBERS.iter().filter_map(|(name, _)| number(&mut costs, name).copied());
        let most = singles.chain(read.costs.op.iter().chain(&read.costs.work).copied()).max();
        if most.is_some_and(|most| most > u32::MAX.into()) {
            // A product of two must fit.
            return Err(format!("no cost is more than {} ns", u32::MAX));
        }
        if read.costs.look == 0 {
            return Err("look must be more than 0".to_owned());
        }
        if read.costs.slice < SLICE_SWITCHES * read.costs.switch.max(1) {
            return Err(format!("slice must be at least {SLICE_SWITCHES} times switch"));
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Calibration {
        let mut costs = Costs { op: vec![10, 20], work: vec![100], ..Costs::default() };
        for (index, (name, _)) in NUMBERS.iter().enumerate() {
            *number(&mut costs, name).unwrap() = index as u64 + 1;
        }
        costs.slice = 900;
        Calibration {
            date: "2026-01-02".into(),
            machine: "two \"CPUs\"".into(),
            load: "0.1".into(),
            costs,
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let mut read = Calibration::parse(&some().to_text()).unwrap();
        assert_eq!(read.machine, "two 'CPUs'");
        read.machine = some().machine;
        assert_eq!(read, some());
    }

    #[test]
    fn what_is_wrong_is_said() {
        let text = some().to_text();
        let parse = |text: &str| Calibration::parse(text).unwrap_err();
        let says = |from: &str, to: &str, what: &str| {
            let said = parse(&text.replace(from, to));
            assert!(said.contains(what), "{said}");
        };
        says("\nline = 2", "\nlime = 2", "`lime`");
        says("\nline = 2", "", "`line`");
        says("\nline = 2", "\nline = \"two\"", "invalid type");
        says("\nline = 2", "\nline = -2", "invalid value");
        says("\nline = 2", "\nline", "TOML parse error");
        says("op = [10, 20]", "op = []", "must take time");
        says("slice = 900", "slice = 60", "slice must be at least 8 times switch");
        says("look = 3", "look = 0", "look must be more than 0");
        says("\nline = 2", "\nline = 99999999999", "no cost is more than");
        says("load = ", "lode = ", "it lacks load");
    }

    #[test]
    fn every_cost_can_be_scaled() {
        for name in ADJUSTABLE {
            let mut costs = some().costs;
            assert!(costs.scale(name, 4, 1), "{name}");
            assert_ne!(costs, some().costs, "{name}");
            assert!(costs.scale(name, 1, 4));
            assert_eq!(costs, some().costs, "{name}");
        }
        assert!(!some().costs.scale("rent", 2, 1));
        assert_eq!(ADJUSTABLE.len(), NUMBERS.len() + 2);
    }
}
