//! A point in the life of a process: a leak check, a time since its beginning, its end.
//!
//! The live blocks at a point are those that the last check up to that point counted.

use std::path::{Path, PathBuf};
use std::str::FromStr;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Point {
    #[default]
    End,
    /// The check with this number.
    Check(u32),
    /// This many nanoseconds after the process began.
    Time(u64),
}

impl Point {
    /// Returns whether a check is at or before the point.
    pub(super) fn includes(self, number: u32, ns: u64) -> bool {
        match self {
            Self::End => true,
            Self::Check(last) => number <= last,
            Self::Time(last) => ns <= last,
        }
    }
}

impl FromStr for Point {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const UNITS: [(&str, f64); 5] =
            [("ms", 1e6), ("min", 60e9), ("s", 1e9), ("m", 60e9), ("h", 3600e9)];
        let wrong =
            || format!("'{text}' is no point: a check's number, a time such as 10s, or end");
        if text == "end" {
            return Ok(Self::End);
        }
        if let Ok(number) = text.parse() {
            return Ok(Self::Check(number));
        }
        let (number, unit) = UNITS
            .iter()
            .find_map(|(unit, ns)| Some((text.strip_suffix(unit)?, ns)))
            .ok_or_else(wrong)?;
        let number: f64 = number.trim().parse().map_err(|_| wrong())?;
        if number.is_finite() && number >= 0.0 {
            Ok(Self::Time((number * unit) as u64))
        } else {
            Err(wrong())
        }
    }
}

/// Splits `RECORD@POINT`. The name of an existing file is not split: it may contain an `@`.
pub(crate) fn split(argument: &Path) -> Result<(PathBuf, Point), String> {
    let whole = || (argument.to_owned(), Point::End);
    if argument.exists() {
        return Ok(whole());
    }
    match argument.to_str().and_then(|text| text.rsplit_once('@')) {
        Some((path, point)) if !path.is_empty() => Ok((path.into(), point.parse()?)),
        _ => Ok(whole()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_numbers_times_and_the_end() {
        for (text, point) in [
            ("3", Point::Check(3)),
            ("end", Point::End),
            ("10s", Point::Time(10_000_000_000)),
            ("1.5 min", Point::Time(90_000_000_000)),
            ("2m", Point::Time(120_000_000_000)),
            ("500ms", Point::Time(500_000_000)),
            ("1h", Point::Time(3_600_000_000_000)),
        ] {
            assert_eq!(text.parse(), Ok(point), "{text}");
        }
        for wrong in ["", "s", "-1s", "ten", "3x", "nans", "-3"] {
            assert!(wrong.parse::<Point>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn arguments_are_split_at_the_last_at() {
        assert_eq!(split(Path::new("/x/a@b@3")), Ok(("/x/a@b".into(), Point::Check(3))));
        assert_eq!(split(Path::new("/x/a")), Ok(("/x/a".into(), Point::End)));
        assert!(split(Path::new("/x/a@noon")).is_err());
        assert_eq!(split(Path::new("/")), Ok(("/".into(), Point::End)));
    }
}
