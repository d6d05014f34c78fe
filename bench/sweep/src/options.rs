//! The command line.

use std::path::PathBuf;

use clap::Parser;
use clap::builder::ArgPredicate::IsPresent;
use figures::options::{Numbers, library, number, numbers, only};

/// heapwright as it comes.
pub(crate) const OURS: &str = "heapwright";
/// heapwright with a cache for each CPU; measured with several threads only.
pub(crate) const PER_CPU: &str = "heapwright-percpu";
/// The program without a preload.
pub(crate) const GLIBC: &str = "glibc";

/// An allocator: a column of the tables.
#[derive(Clone, Debug)]
pub(crate) struct Allocator {
    pub(crate) name: String,
    /// `NAME=VALUE`, `LD_PRELOAD` among them.
    pub(crate) environment: Vec<String>,
}

impl Allocator {
    /// Whether it is one that heapwright is measured by: neither itself (another build of it has a
    /// name that begins so) nor what every program has.
    pub(crate) fn is_peer(&self) -> bool {
        !self.name.starts_with(OURS) && self.name != GLIBC
    }
}

/// Measures entry points at sizes in patterns under heapwright and other allocators, in turns,
/// and prints tables and verdicts; ci/sweep.sh calls it
#[derive(Parser, Debug)]
#[command(name = "sweep", args_override_self = true)]
pub(crate) struct Asked {
    /// What is built of sweep.cc
    #[arg(long)]
    pub(crate) program: PathBuf,
    /// heapwright's library
    #[arg(long)]
    ours: String,
    /// A folder for sweep.json (every cell) and sweep.html (pictures)
    #[arg(long)]
    pub(crate) out: PathBuf,
    /// Another allocator's library, NAME=[VAR=VALUE ...]PATH; may be repeated. A NAME that begins with
    /// heapwright is a column, but no peer
    #[arg(long, value_parser = peer)]
    with: Vec<Allocator>,
    /// Only these of all the allocators
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Only these numbers of threads
    #[arg(long, default_value = "1,2,8", value_parser = numbers(1..=8_u32))]
    pub(crate) threads: Numbers<u32>,
    /// A regular expression: only cells of which `GROUP BYTES` matches, e.g. '^new.* 300$'
    #[arg(long, default_value = "", hide_default_value = true)]
    pub(crate) cells: String,
    /// Of several threads each is three
    #[arg(long, default_value = "3", default_value_if("quick", IsPresent, "1"), value_parser = number(1..=100_usize))]
    pub(crate) rounds: usize,
    /// An instant a cell, one round: only that all runs
    #[arg(long)]
    pub(crate) quick: bool,
}

fn peer(line: &str) -> Result<Allocator, String> {
    let (name, environment) = library(line)?;
    Ok(Allocator { name, environment })
}

impl Asked {
    /// What takes part.
    pub(crate) fn allocators(&self) -> Result<Vec<Allocator>, String> {
        let ours = format!("LD_PRELOAD={}", self.ours);
        let named = |name: &str, environment| Allocator { name: name.to_owned(), environment };
        let mut allocators = vec![
            named(OURS, vec![ours.clone()]),
            named(PER_CPU, vec!["HEAPWRIGHT=cache=percpu".to_owned(), ours]),
        ];
        allocators.extend(self.with.iter().cloned());
        allocators.push(named(GLIBC, Vec::new()));
        for (at, one) in allocators.iter().enumerate() {
            if allocators[..at].iter().any(|other| other.name == one.name) {
                return Err(format!("--with: {} is there twice", one.name));
            }
        }
        only(&mut allocators, &self.only, |allocator| &allocator.name)?;
        Ok(allocators)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(more: &str) -> Result<(Asked, Vec<Allocator>), String> {
        let line = format!("sweep --program /p --ours /o.so --out /out {more}");
        let asked = Asked::try_parse_from(line.split_whitespace()).map_err(|e| e.to_string())?;
        let allocators = asked.allocators()?;
        Ok((asked, allocators))
    }

    #[test]
    fn what_is_said() {
        let (asked, allocators) =
            parsed("--with a=/a.so --only glibc,a --threads 8 --quick").unwrap();
        let names: Vec<&str> = allocators.iter().map(|a| a.name.as_str()).collect();
        assert_eq!((names, asked.threads.0, asked.rounds), (vec!["a", "glibc"], vec![8], 1));
        let (asked, allocators) = parsed("").unwrap();
        assert_eq!((asked.threads.0, asked.rounds, asked.quick), (vec![1, 2, 8], 3, false));
        assert!(!allocators.iter().any(Allocator::is_peer));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (more, why) in [
            ("--threads 9", "'9' is no number from 1 to 8"),
            ("--with glibc=/a.so", "glibc is there twice"),
            ("--only a", "there is no 'a'; there are heapwright,"),
        ] {
            assert!(parsed(more).unwrap_err().contains(why), "{more}");
        }
    }
}
