//! Command lines, which clap reads: ranges of numbers, libraries, and how a bench ends.
//!
//! An error says which word is wrong, and what it may be.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;

use clap::Parser;

/// Reads the command line and does what it asks for. It ends with 0; with 1 if something is missed
/// (`false`); with 2 if it could not be done, which is said in a line.
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

/// What reads a number of a range.
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

/// A list of numbers, each once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbers<T>(pub Vec<T>);

/// What reads numbers of a range, with commas between them; one that is there twice counts once.
pub fn numbers<T: FromStr + PartialOrd + Display + Clone>(
    range: RangeInclusive<T>,
) -> impl Fn(&str) -> Result<Numbers<T>, String> + Clone {
    let number = number(range);
    move |list| {
        let mut all = Vec::new();
        for word in list.split(',') {
            let value = number(word)?;
            if !all.contains(&value) {
                all.push(value);
            }
        }
        Ok(Numbers(all))
    }
}

/// Only those of `all` that were asked for by name, if any were.
fn only<T>(mut all: Vec<T>, asked: &[String], name: impl Fn(&T) -> &str) -> Result<Vec<T>, String> {
    if let Some(wrong) = asked.iter().find(|&asked| !all.iter().any(|one| name(one) == asked)) {
        let names: Vec<&str> = all.iter().map(name).collect();
        return Err(format!("--only: there is no '{wrong}'; there are {}", names.join(", ")));
    }
    all.retain(|one| asked.is_empty() || asked.iter().any(|asked| asked == name(one)));
    Ok(all)
}

/// An allocator as a program has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocator {
    /// What it is called in tables.
    pub name: String,
    /// `NAME=VALUE`, `LD_PRELOAD` among them.
    pub environment: Vec<String>,
}

/// The program without a preload.
pub const GLIBC: &str = "glibc";

impl Allocator {
    /// One with these variables.
    pub fn new(name: &str, environment: impl IntoIterator<Item = String>) -> Self {
        Self { name: name.to_owned(), environment: environment.into_iter().collect() }
    }

    /// glibc.
    pub fn glibc() -> Self {
        Self::new(GLIBC, [])
    }

    /// Another library, as a command line has it.
    pub fn peer(line: &str) -> Result<Self, String> {
        let (name, environment) = library(line)?;
        Ok(Self { name, environment })
    }
}

/// What benches that race libraries are told.
#[derive(clap::Args, Clone, Debug)]
pub struct Libraries {
    /// heapwright's library
    #[arg(long)]
    pub ours: String,
    /// heapwright-launcher, which runs go through
    #[arg(long)]
    pub launcher: PathBuf,
    /// A folder for results.tsv (every run), tables and pictures
    #[arg(long)]
    pub out: PathBuf,
    /// Another allocator's library, NAME=[VAR=VALUE ...]PATH; may be repeated
    #[arg(long, value_parser = Allocator::peer)]
    pub with: Vec<Allocator>,
    /// Only these of all
    #[arg(long, value_delimiter = ',')]
    pub only: Vec<String>,
}

impl Libraries {
    /// Who takes part: ours, the others, and glibc unless nobody wants it.
    pub fn chosen(&self, ours: Vec<Allocator>, glibc: bool) -> Result<Vec<Allocator>, String> {
        let glibc = glibc.then(Allocator::glibc);
        let all: Vec<Allocator> = ours.into_iter().chain(self.with.clone()).chain(glibc).collect();
        for (at, one) in all.iter().enumerate() {
            if all[..at].iter().any(|other| other.name == one.name) {
                return Err(format!("--with: there are two named {}", one.name));
            }
        }
        only(all, &self.only, |one| &one.name)
    }
}

/// A library to preload, as `heapwright bench --with` takes it and bench/peers prints it,
/// `NAME=[VAR=VALUE ...]PATH`: its name, and the environment that it needs.
fn library(line: &str) -> Result<(String, Vec<String>), String> {
    let wrong = || format!("'{line}' is no NAME=[VAR=VALUE ...]/PATH/TO/LIBRARY");
    let (name, rest) = line.split_once('=').ok_or_else(wrong)?;
    let mut words: Vec<String> = rest.split(' ').map(str::to_owned).collect();
    let path = words.pop().filter(|path| path.starts_with('/')).ok_or_else(wrong)?;
    if name.is_empty() || words.iter().any(|word| !word.contains('=')) {
        return Err(wrong());
    }
    words.push(format!("LD_PRELOAD={path}"));
    Ok((name.to_owned(), words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_within_their_range() {
        assert_eq!(number(1..=9)("7"), Ok(7));
        assert_eq!(numbers(1..=80)("2,40,2"), Ok(Numbers(vec![2, 40])));
        let wrong = |word| number(1_u32..=9)(word).unwrap_err();
        assert_eq!(wrong("0"), "'0' is no number from 1 to 9");
        assert!(wrong("many").contains("'many'") && wrong("-1").contains("'-1'"));
        assert!(numbers(1..=80)("2,x").unwrap_err().contains("'x'"));
    }

    #[test]
    fn only_those_that_there_are() {
        let all = || vec!["a".to_owned(), "b".to_owned()];
        let wrong = only(all(), &["c".to_owned()], |one| one).unwrap_err();
        assert_eq!(wrong, "--only: there is no 'c'; there are a, b");
        assert_eq!(only(all(), &[], |one| one), Ok(all()));
        assert_eq!(only(all(), &["b".to_owned()], |one| one).unwrap(), ["b"]);
    }

    #[test]
    fn a_library_is_what_bench_peers_prints() {
        let (name, environment) = library("m=A=1 B=2 /m.so").unwrap();
        assert_eq!((name.as_str(), environment.len()), ("m", 3));
        assert_eq!(environment, ["A=1", "B=2", "LD_PRELOAD=/m.so"]);
        for wrong in ["scudo", "=/a.so", "a=b.so", "a=b /a.so", "a="] {
            assert!(library(wrong).unwrap_err().contains("is no NAME="), "{wrong}");
        }
    }
}
