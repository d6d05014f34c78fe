//! The command line.

use std::path::PathBuf;

use clap::Parser;
use clap::builder::ArgPredicate::IsPresent;
use figures::options::{Allocator, GLIBC, Libraries, Numbers, number, numbers};

/// heapwright as it comes.
pub(crate) const OURS: &str = "heapwright";
/// heapwright with a cache for each CPU; measured with several threads only.
pub(crate) const PER_CPU: &str = "heapwright-percpu";
/// Whether it is one that heapwright is measured by: neither itself (another build of it has a
/// name that begins so) nor what every program has.
pub(crate) fn is_peer(name: &str) -> bool {
    !name.starts_with(OURS) && name != GLIBC
}

/// Measures entry points at sizes in patterns under heapwright and other allocators, in turns,
/// and prints tables and verdicts; ci/sweep.sh calls it
#[derive(Parser, Debug)]
#[command(name = "sweep", args_override_self = true)]
pub(crate) struct Asked {
    /// What is built of sweep.cc
    #[arg(long)]
    pub(crate) program: PathBuf,
    #[command(flatten)]
    pub(crate) libraries: Libraries,
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

impl Asked {
    /// What takes part.
    pub(crate) fn allocators(&self) -> Result<Vec<Allocator>, String> {
        let ours = format!("LD_PRELOAD={}", self.libraries.ours);
        let per_cpu = ["HEAPWRIGHT=cache=percpu".to_owned(), ours.clone()];
        let ours = vec![Allocator::new(OURS, [ours]), Allocator::new(PER_CPU, per_cpu)];
        self.libraries.chosen(ours, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(more: &str) -> Result<(Asked, Vec<Allocator>), String> {
        let line = format!("sweep --program /p --launcher /l --ours /o.so --out /out {more}");
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
        assert!(!allocators.iter().any(|one| is_peer(&one.name)));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (more, why) in [
            ("--threads 9", "'9' is no number from 1 to 8"),
            ("--with glibc=/a.so", "there are two named glibc"),
            ("--only a", "there is no 'a'; there are heapwright,"),
        ] {
            assert!(parsed(more).unwrap_err().contains(why), "{more}");
        }
    }
}
