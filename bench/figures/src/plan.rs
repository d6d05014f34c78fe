//! The plan: one line for each run, with tabs between fields.
//!
//! ```text
//! SECTION  ROW  COLUMN  OF_ROUNDS  STDIN  [NAME=VALUE...]  COMMAND  [ARGUMENT...]
//! ```
//!
//! Lines of the same section and row are compared, and must print the same. The column names the
//! contender. OF_ROUNDS is the number of rounds in which a line takes part, 0 for all. (A slow peer
//! runs once.) STDIN is a file, or `-`. A script writes a plan.

use std::path::{Path, PathBuf};

use crate::cells::Cell;

/// One line of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// The place of its numbers.
    pub cell: Cell,
    /// The number of rounds in which it takes part; 0: all.
    pub of_rounds: usize,
    /// The file that is its standard input, if any.
    pub stdin: Option<PathBuf>,
    /// `NAME=VALUE`, as a shell exports them.
    pub environment: Vec<String>,
    /// The program's path, and its arguments.
    pub command: Vec<String>,
}

impl Planned {
    /// Makes a run without input for every round. `words` may begin with settings.
    pub fn new((section, row, column): (&str, &str, &str), words: Vec<String>) -> Self {
        let cell = (section.to_owned(), row.to_owned(), column.to_owned());
        let (environment, command) = divided(words);
        Self { cell, of_rounds: 0, stdin: None, environment, command }
    }

    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split('\t').map(str::to_owned);
        let cell = (words.next()?, words.next()?, words.next()?);
        let of_rounds = words.next()?.parse().ok()?;
        let stdin = words.next().filter(|path| path != "-").map(PathBuf::from);
        let (environment, command) = divided(words);
        (!command.is_empty()).then_some(Self { cell, of_rounds, stdin, environment, command })
    }

    /// Returns whether the run is part of a round; rounds count from 1.
    pub fn takes_part(&self, round: usize) -> bool {
        self.of_rounds == 0 || round <= self.of_rounds
    }

    /// Returns whether two runs are compared with each other.
    pub fn same_row(&self, other: &Self) -> bool {
        (&self.cell.0, &self.cell.1) == (&other.cell.0, &other.cell.1)
    }
}

fn divided(words: impl IntoIterator<Item = String>) -> (Vec<String>, Vec<String>) {
    let mut command_began = false;
    words.into_iter().partition(|word| {
        command_began |= !is_setting(word);
        !command_began
    })
}

fn is_setting(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_')
    })
}

/// Reads the lines of a file.
pub fn read(file: &Path) -> Result<Vec<Planned>, String> {
    let text = std::fs::read_to_string(file)
        .map_err(|e| format!("cannot read {}: {e}", file.display()))?;
    text.lines().map(|line| Planned::parse(line).ok_or_else(|| format!("no run: {line}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_stand_before_the_command() {
        let line = "pr\t5000\tours\t0\t-\tLD_PRELOAD=/a b.so\tX=\t/bin/echo\tA=b\tc d";
        let planned = Planned::parse(line).unwrap();
        assert_eq!(planned.environment, ["LD_PRELOAD=/a b.so", "X="]);
        assert_eq!(planned.command, ["/bin/echo", "A=b", "c d"]);
        assert_eq!((planned.stdin, planned.of_rounds), (None, 0));
        assert!(Planned::parse("pr\t5000\tours\t0\t-\tX=1").is_none());
        assert!(Planned::parse("pr\t5000\tours\tmany\t-\t/bin/true").is_none());
    }
}
