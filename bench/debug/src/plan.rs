//! The plan: one line a run, its fields separated by tabs:
//!
//! ```text
//! SECTION  ROW  COLUMN  OF_ROUNDS  STDIN  [NAME=VALUE...]  COMMAND  [ARGUMENT...]
//! ```
//!
//! Lines of the same section and row are compared with each other and must print
//! the same; the column says who runs. OF_ROUNDS is in how many of the rounds it
//! takes part, 0 for all (a slow peer runs once). STDIN is a file, or `-`.

use std::path::{Path, PathBuf};

/// Where a number belongs: section, row, column.
pub(crate) type Cell = (String, String, String);

/// One line.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) cell: Cell,
    pub(crate) of_rounds: usize,
    pub(crate) stdin: Option<PathBuf>,
    /// `NAME=VALUE`, as a shell exports them.
    pub(crate) environment: Vec<String>,
    pub(crate) command: Vec<String>,
}

impl Planned {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split('\t').map(str::to_owned);
        let cell = (words.next()?, words.next()?, words.next()?);
        let of_rounds = words.next()?.parse().ok()?;
        let stdin = words.next().filter(|path| path != "-").map(PathBuf::from);
        let (environment, command): (Vec<_>, Vec<_>) = {
            let mut command_began = false;
            words.partition(|word| {
                command_began |= !is_setting(word);
                !command_began
            })
        };
        (!command.is_empty()).then_some(Self { cell, of_rounds, stdin, environment, command })
    }

    pub(crate) fn takes_part(&self, round: usize) -> bool {
        self.of_rounds == 0 || round <= self.of_rounds
    }
}

fn is_setting(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_')
    })
}

/// The lines of a file, those of one row together.
pub(crate) fn read(file: &Path) -> Result<Vec<Vec<Planned>>, String> {
    let text = std::fs::read_to_string(file)
        .map_err(|e| format!("cannot read {}: {e}", file.display()))?;
    let mut rows: Vec<Vec<Planned>> = Vec::new();
    for line in text.lines() {
        let planned = Planned::parse(line).ok_or_else(|| format!("no run: {line}"))?;
        match rows.last_mut() {
            Some(row) if same_row(&row[0].cell, &planned.cell) => row.push(planned),
            _ => rows.push(vec![planned]),
        }
    }
    Ok(rows)
}

fn same_row(one: &Cell, other: &Cell) -> bool {
    (&one.0, &one.1) == (&other.0, &other.1)
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
