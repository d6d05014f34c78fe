//! The command line.

use std::path::PathBuf;

use figures::options::{library, number, numbers};

/// What `--help` prints.
pub(crate) const USAGE: &str = "\
usage: sweep --program FILE --ours LIBRARY --out FOLDER [options]

Measures entry points at sizes in patterns under heapwright and other allocators, in turns,
and prints tables and verdicts. FOLDER gets sweep.json (every cell) and sweep.html (pictures).
ci/sweep.sh calls it.

  --with NAME=[VAR=VALUE ...]PATH  another allocator's library; may be repeated. A NAME that
                                   begins with heapwright is a column, but no peer
  --only A,B,...                   only these of all the allocators
  --threads 1,2,8                  only these numbers of threads
  --cells REGEX                    only cells of which `GROUP BYTES` matches, e.g. '^new.* 300$'
  --rounds N                       (default: 3; of several threads each is three)
  --quick                          an instant a cell, one round: only that all runs
";

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

/// What to do.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) program: PathBuf,
    pub(crate) out: PathBuf,
    pub(crate) allocators: Vec<Allocator>,
    pub(crate) threads: Vec<u32>,
    pub(crate) cells: String,
    pub(crate) rounds: usize,
    pub(crate) quick: bool,
}

/// Reads the arguments; nothing if help is wanted.
pub(crate) fn parse(words: impl Iterator<Item = String>) -> Result<Option<Asked>, String> {
    let mut words = words;
    let (mut program, mut ours, mut out, mut only) = (None, None, None, None);
    let (mut others, mut threads, mut cells) = (Vec::new(), vec![1, 2, 8], String::new());
    let (mut rounds, mut quick) = (None, false);
    while let Some(word) = words.next() {
        let mut value = || {
            words.next().filter(|v| !v.is_empty()).ok_or_else(|| format!("{word} needs a value"))
        };
        match word.as_str() {
            "--help" | "-h" => return Ok(None),
            "--program" => program = Some(PathBuf::from(value()?)),
            "--ours" => ours = Some(value()?),
            "--out" => out = Some(PathBuf::from(value()?)),
            "--with" => {
                let (name, environment) = library(&value()?)?;
                others.push(Allocator { name, environment });
            }
            "--only" => only = Some(value()?),
            "--threads" => threads = numbers(&value()?, &word, 1..=8)?,
            "--cells" => cells = value()?,
            "--rounds" => rounds = Some(number(&value()?, &word, 1..=100)?),
            "--quick" => quick = true,
            _ => return Err(format!("'{word}' is not understood; sweep --help says what is")),
        }
    }
    let ours = format!("LD_PRELOAD={}", ours.ok_or("--ours, heapwright's library, is needed")?);
    let named = |name: &str, environment| Allocator { name: name.to_owned(), environment };
    let mut allocators = vec![
        named(OURS, vec![ours.clone()]),
        named(PER_CPU, vec!["HEAPWRIGHT=cache=percpu".to_owned(), ours]),
    ];
    allocators.append(&mut others);
    allocators.push(named(GLIBC, Vec::new()));
    for (at, one) in allocators.iter().enumerate() {
        if allocators[..at].iter().any(|other| other.name == one.name) {
            return Err(format!("--with: {} is there twice", one.name));
        }
    }
    if let Some(only) = only {
        let only: Vec<&str> = only.split(',').collect();
        if let Some(name) = only.iter().find(|&&name| !allocators.iter().any(|a| a.name == name)) {
            let names: Vec<&str> = allocators.iter().map(|a| a.name.as_str()).collect();
            return Err(format!("--only: there is no '{name}'; there are {}", names.join(", ")));
        }
        allocators.retain(|allocator| only.contains(&allocator.name.as_str()));
    }
    Ok(Some(Asked {
        program: program.ok_or("--program is needed, what is built of sweep.cc")?,
        out: out.ok_or("--out is needed, a folder for what comes of it")?,
        allocators,
        threads,
        cells,
        rounds: rounds.unwrap_or(if quick { 1 } else { 3 }),
        quick,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(more: &str) -> Result<Option<Asked>, String> {
        let line = format!("--program /p --ours /o.so --out /out {more}");
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn what_is_said() {
        let asked = parsed("--with a=/a.so --only glibc,a --threads 8 --quick").unwrap().unwrap();
        let names: Vec<&str> = asked.allocators.iter().map(|a| a.name.as_str()).collect();
        assert_eq!((names, asked.threads, asked.rounds), (vec!["a", "glibc"], vec![8], 1));
        let asked = parsed("").unwrap().unwrap();
        assert_eq!((asked.threads, asked.rounds, asked.quick), (vec![1, 2, 8], 3, false));
        assert!(!asked.allocators.iter().any(Allocator::is_peer));
        assert!(parsed("--help").unwrap().is_none());
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (more, why) in [
            ("--threads 9", "'9' is no number from 1 to 8"),
            ("--with glibc=/a.so", "glibc is there twice"),
            ("--only a", "there is no 'a'; there are heapwright,"),
            ("--cells", "--cells needs a value"),
            ("--fast", "'--fast' is not understood"),
        ] {
            assert!(parsed(more).unwrap_err().contains(why), "{more}");
        }
        assert!(parse(std::iter::empty()).unwrap_err().contains("--ours"));
    }
}
