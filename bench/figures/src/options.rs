//! Command lines, which clap reads: ranges of numbers, and the exit codes of a bench.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::process::ExitCode;
use std::str::FromStr;

use clap::Parser;

/// Reads the command line and runs `run`. Exits with 0; with 1 if `run` returns `false`; with 2
/// after an error, which is printed in one line.
pub fn main<Asked: Parser>(run: impl FnOnce(Asked) -> Result<bool, String>) -> ExitCode {
    match run(Asked::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("{}: {message}", Asked::command().get_name());
            ExitCode::from(2)
        }
    }
}

/// Returns a parser for a number in a range.
pub fn number<T: FromStr + PartialOrd + Display>(
    range: RangeInclusive<T>,
) -> impl Fn(&str) -> Result<T, String> + Clone
where
    RangeInclusive<T>: Clone,
{
    move |word| {
        let (from, to) = (range.start(), range.end());
        let number = word.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| format!("'{word}' is no number from {from} to {to}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_within_their_range() {
        assert_eq!(number(1..=9)("7"), Ok(7));
        let wrong = |word| number(1_u32..=9)(word).unwrap_err();
        assert_eq!(wrong("0"), "'0' is no number from 1 to 9");
        assert!(wrong("many").contains("'many'") && wrong("-1").contains("'-1'"));
    }
}
