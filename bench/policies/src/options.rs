//! The race's command line.
//!
//! A word that is not understood ends it before anything has run: a race takes long.

use std::path::PathBuf;

use figures::options::{number, numbers};
use policies::{ALL, CHOSEN, Variant, find};

use crate::USAGE;

/// What is asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Options {
    pub(crate) caches: Vec<usize>,
    pub(crate) threads: Vec<usize>,
    pub(crate) operations: usize,
    pub(crate) variants: Vec<&'static Variant>,
    pub(crate) rounds: usize,
    pub(crate) keep: Option<PathBuf>,
}

impl Options {
    pub(crate) fn parse(words: &[String]) -> Result<Self, String> {
        let mut options = Self {
            caches: vec![2, 8, 32],
            threads: vec![40, 80],
            operations: 20_000,
            variants: ALL.iter().collect(),
            rounds: 9,
            keep: None,
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let value = words
                .next()
                .ok_or_else(|| format!("'{word}' is unknown, or wants a value\n{USAGE}"))?;
            match word.as_str() {
                "--caches" => options.caches = numbers(value, word, 1..=4096)?,
                "--threads" => options.threads = numbers(value, word, 1..=4096)?,
                "--operations" => options.operations = number(value, word, 1..=1_000_000_000)?,
                "--rounds" => options.rounds = number(value, word, 1..=1000)?,
                "--keep" => options.keep = Some(PathBuf::from(value)),
                "--variants" => options.variants = chosen(value)?,
                _ => return Err(format!("'{word}' is unknown\n{USAGE}")),
            }
        }
        Ok(options)
    }
}

/// The variants of these names, the library's own first among them if it is not there.
fn chosen(names: &str) -> Result<Vec<&'static Variant>, String> {
    let mut variants: Vec<&'static Variant> = Vec::new();
    for name in names.split(',') {
        let variant = find(name)
            .ok_or_else(|| format!("'{name}' is no policy; `policies list` shows the names"))?;
        if !variants.contains(&variant) {
            variants.push(variant);
        }
    }
    if let Some(own) = find(CHOSEN).filter(|own| !variants.contains(own)) {
        variants.insert(0, own);
    }
    Ok(variants)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse(&words)
    }

    #[test]
    fn the_librarys_own_is_always_there_and_none_twice() {
        let options = parse("--variants before,stay,before").unwrap();
        let names: Vec<_> = options.variants.iter().map(|variant| variant.name).collect();
        assert_eq!(names, [CHOSEN, "before", "stay"]);
    }

    #[test]
    fn what_is_wrong_is_said_in_a_line() {
        let wrong = |line: &str| parse(line).unwrap_err().lines().next().unwrap().to_owned();
        assert_eq!(
            wrong("--variants best"),
            "'best' is no policy; `policies list` shows the names"
        );
        assert_eq!(wrong("--caches 2,0"), "--caches: '0' is no number from 1 to 4096");
        assert_eq!(wrong("--fast 1"), "'--fast' is unknown");
        assert_eq!(wrong("--rounds"), "'--rounds' is unknown, or wants a value");
    }
}
