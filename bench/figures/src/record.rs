//! What a program of a bench prints: lines `LEAD NAME=VALUE ...`, the last one `result`.
//!
//! ```text
//!   rss request=100 ns=81234567 bytes=51234816
//!   result program=request wall_ns=812345678 peak=... checksum=18446744073709551615 ...
//! ```
//!
//! A value is a word, and a number where somebody asks for one: a checksum has 64 bits, more
//! than a floating number holds.

use std::collections::BTreeMap;

/// The fields of one line, and all that was printed with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    fields: BTreeMap<String, String>,
    /// Everything that the program printed.
    pub text: String,
}

/// A number that can be measured.
fn measured(word: &str) -> Option<f64> {
    word.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0)
}

impl Record {
    /// The fields of a line without its lead.
    fn of_line(line: &str) -> Result<Self, String> {
        let mut fields = BTreeMap::new();
        for word in line.split_whitespace() {
            let Some((name, value)) = word.split_once('=') else {
                return Err(format!("'{word}' is no NAME=VALUE"));
            };
            if fields.insert(name.to_owned(), value.to_owned()).is_some() {
                return Err(format!("{name} is there twice"));
            }
        }
        Ok(Self { fields, text: String::new() })
    }

    /// One that a bench measured itself.
    pub fn of(fields: &[(&str, f64)]) -> Self {
        let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), value.to_string()));
        Self { fields: fields.collect(), text: String::new() }
    }

    /// The result, the last line of what was printed; each of these numbers must be there.
    pub fn result<'a>(
        text: &str,
        needed: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, String> {
        let line = text.lines().last().and_then(|line| line.strip_prefix("result "));
        let mut record = Self::of_line(line.ok_or("it printed no result")?)?;
        for name in needed {
            let value = record.word(name).ok_or_else(|| format!("its result has no {name}"))?;
            measured(value).ok_or_else(|| format!("'{name}={value}' has no number"))?;
        }
        record.text = text.to_owned();
        Ok(record)
    }

    /// The lines that begin with a lead.
    pub fn series(text: &str, lead: &str) -> Vec<Self> {
        let lines = text.lines().filter_map(|line| line.strip_prefix(lead)?.strip_prefix(' '));
        lines.filter_map(|line| Self::of_line(line).ok()).collect()
    }

    /// A field as a number.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.word(name).and_then(measured)
    }

    /// All fields that are numbers.
    pub fn numbers(&self) -> BTreeMap<String, f64> {
        let numbers = self.fields.iter();
        numbers.filter_map(|(name, word)| Some((name.clone(), measured(word)?))).collect()
    }

    /// A field as it was printed.
    pub fn word(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "rss request=0 bytes=4096\nrss request=5 bytes=8192\n\
                        result program=x wall_ns=5.5 peak=3 checksum=18446744073709551615\n";

    #[test]
    fn a_result_is_read() {
        let record = Record::result(SAID, ["wall_ns", "peak"]).unwrap();
        assert_eq!((record.number("wall_ns"), record.number("program")), (Some(5.5), None));
        assert_eq!(record.word("checksum"), Some("18446744073709551615"));
        assert_eq!(record.numbers().len(), 3);
    }

    #[test]
    fn a_series_is_read() {
        let series = Record::series(SAID, "rss");
        assert_eq!(series.len(), 2);
        assert_eq!(series[1].number("bytes"), Some(8192.0));
    }

    #[test]
    fn what_is_no_result_is_refused_in_words() {
        for (text, why) in [
            ("", "no result"),
            ("hello\n", "no result"),
            ("result a=1", "its result has no b"),
            ("result a=1 b=", "'b=' has no number"),
            ("result a=1 b=-1", "has no number"),
            ("result a=1 b=nan", "has no number"),
            ("result a=1 b", "'b' is no NAME=VALUE"),
            ("result a=1 a=1", "a is there twice"),
        ] {
            let said = Record::result(text, ["a", "b"]).unwrap_err();
            assert!(said.contains(why), "{said}");
        }
    }
}
