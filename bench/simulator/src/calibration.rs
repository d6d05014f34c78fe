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
//! The file is a subset of TOML. Measured costs come from `simulator calibrate`; two
//! are not measured but taken from the library's source ([`SPINS`], [`NAP_NS`]) and one
//! is assumed: `cold_lines`, how many more lines than the lock's must be fetched by a
//! CPU that finds a cache which another one used last. Each stands in the file all the
//! same, for a sensitivity range needs it.

use std::fmt::Write as _;

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
#[derive(Clone, PartialEq, Eq, Debug, Default)]
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
            "# What things cost, in nanoseconds: made by `simulator calibrate` (ci/simulate.sh calibrate).\n\n",
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

    /// Reads the file's text; an error says which line and what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut read = Self {
            date: String::new(),
            machine: String::new(),
            load: String::new(),
            costs: Costs::default(),
        };
        let mut missing: Vec<&str> = ADJUSTABLE.to_vec();
        for (index, line) in text.lines().enumerate() {
            // No text in the file holds a '#' but comments.
            let line = line.split('#').next().unwrap_or("").trim();
            if line.is_empty() {
                continue;
            }
            let wrong = |what: &str| format!("line {}: {what}", index + 1);
            let (name, value) = line.split_once('=').ok_or_else(|| wrong("is not NAME = VALUE"))?;
            let (name, value) = (name.trim(), value.trim());
            let ns = |word: &str| -> Result<u64, String> {
                // So large that a product with another one fits.
                let ns: u32 = word.trim().parse().map_err(|_| {
                    wrong(&format!("'{}' is no whole number of nanoseconds", word.trim()))
                })?;
                Ok(ns.into())
            };
            match name {
                "date" => read.date = value.trim_matches('"').to_owned(),
                "machine" => read.machine = value.trim_matches('"').to_owned(),
                "load" => read.load = value.trim_matches('"').to_owned(),
                "op" | "work" => {
                    let parts = value
                        .strip_prefix('[')
                        .and_then(|value| value.strip_suffix(']'))
                        .ok_or_else(|| wrong("wants a list: [1, 2, 3]"))?;
                    let parts = parts
                        .split(',')
                        .filter(|part| !part.trim().is_empty())
                        .map(ns)
                        .collect::<Result<Vec<u64>, String>>()?;
                    if parts.iter().sum::<u64>() == 0 {
                        return Err(wrong("a list that takes no time"));
                    }
                    if name == "op" { read.costs.op = parts } else { read.costs.work = parts }
                }
                _ => match number(&mut read.costs, name) {
                    Some(place) => *place = ns(value)?,
                    None => return Err(wrong(&format!("'{name}' is no cost"))),
                },
            }
            missing.retain(|known| *known != name);
        }
        if !missing.is_empty() {
            return Err(format!("it lacks {}", missing.join(", ")));
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
        assert_eq!(
            parse(&text.replace("line = 2", "line = two")),
            "line 8: 'two' is no whole number of nanoseconds"
        );
        assert_eq!(parse(&text.replace("line = 2", "lime = 2")), "line 8: 'lime' is no cost");
        assert_eq!(parse(&text.replace("line = 2", "")), "it lacks line");
        assert_eq!(parse(&text.replace("line = 2", "line")), "line 8: is not NAME = VALUE");
        assert!(parse(&text.replace("op = [10, 20]", "op = []")).ends_with("takes no time"));
        assert!(parse(&text.replace("op = [10, 20]", "op = 10")).ends_with("[1, 2, 3]"));
        assert_eq!(
            parse(&text.replace("slice = 900", "slice = 60")),
            "slice must be at least 8 times switch"
        );
        assert_eq!(parse(&text.replace("look = 3", "look = 0")), "look must be more than 0");
        // A number that would overflow when it is multiplied.
        assert!(parse(&text.replace("line = 2", "line = 99999999999")).contains("no whole number"));
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
