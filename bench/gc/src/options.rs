//! The command line.

use std::path::PathBuf;

use ::figures::options::number;

/// What `--help` prints.
pub(crate) const USAGE: &str = "\
usage: gc --programs DIR --out DIR [options]

  --programs DIR   the loads, built by ci/gc.sh
  --out DIR        where tables.md, runs.txt and rss.csv go
  --only LOADS     gcbench, splay, strings, request, document, template, quiet, boot,
                   pauses, scaling, generations, compact; with commas
  --rounds N       each variant runs so often (default 7; with fewer than 6 a time has no verdict)
  --seconds N      the longest a run may take (default 600)
  --without NAME   a peer that could not be had: bdwgc or jemalloc; may be said again
  --quick          tiny sizes, 2 rounds: only that all runs, and that checksums agree
";

/// What is to be done.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) programs: PathBuf,
    pub(crate) out: PathBuf,
    /// Loads; all if it is empty.
    pub(crate) only: Vec<String>,
    pub(crate) rounds: usize,
    pub(crate) seconds: u64,
    /// Peers that are not there.
    pub(crate) without: Vec<String>,
    pub(crate) quick: bool,
}

impl Options {
    /// Whether a load is to run.
    pub(crate) fn takes(&self, load: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| name == load)
    }

    /// Whether a peer is there.
    pub(crate) fn has(&self, peer: &str) -> bool {
        !self.without.iter().any(|name| name == peer)
    }

    /// A load's settings: in words, as they are meant and as `--quick` has them.
    pub(crate) fn sizes(&self, full: &str, quick: &str) -> Vec<String> {
        let words = if self.quick { quick } else { full };
        words.split_whitespace().map(str::to_owned).collect()
    }
}

/// Reads the words; `None`: help was asked for.
pub(crate) fn parse(
    mut words: impl Iterator<Item = String>,
    loads: &[&str],
) -> Result<Option<Options>, String> {
    let mut options = Options { seconds: 600, ..Options::default() };
    let mut rounds = None;
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs something after it"));
        match word.as_str() {
            "--help" | "-h" => return Ok(None),
            "--programs" => options.programs = value()?.into(),
            "--out" => options.out = value()?.into(),
            "--only" => {
                for name in value()?.split(',') {
                    if !loads.contains(&name) {
                        return Err(format!("there is no load '{name}': {}", loads.join(", ")));
                    }
                    options.only.push(name.to_owned());
                }
            }
            "--rounds" => rounds = Some(number(&value()?, "--rounds", 1..=1000)?),
            "--seconds" => options.seconds = number(&value()?, "--seconds", 1..=86400)?,
            "--without" => options.without.push(value()?),
            "--quick" => options.quick = true,
            _ => return Err(format!("'{word}' is not understood; --help lists the options")),
        }
    }
    options.rounds = rounds.unwrap_or(if options.quick { 2 } else { 7 });
    if options.programs.as_os_str().is_empty() || options.out.as_os_str().is_empty() {
        return Err("--programs and --out are needed".to_owned());
    }
    Ok(Some(options))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &str) -> Result<Option<Options>, String> {
        let words = format!("--programs p --out o {words}");
        parse(words.split_whitespace().map(str::to_owned), &["splay", "boot"])
    }

    #[test]
    fn words_are_read() {
        let options = of("--only boot --rounds 9 --without bdwgc").unwrap().unwrap();
        assert_eq!((options.rounds, options.quick), (9, false));
        assert!(options.takes("boot") && !options.takes("splay"));
        assert!(options.has("jemalloc") && !options.has("bdwgc"));
        assert_eq!(options.sizes("a b", "c"), ["a", "b"]);
    }

    #[test]
    fn quick_has_two_rounds_unless_more_are_asked_for() {
        assert_eq!(of("--quick").unwrap().unwrap().rounds, 2);
        assert_eq!(of("--quick --rounds 3").unwrap().unwrap().rounds, 3);
    }

    #[test]
    fn mistakes_are_named() {
        assert!(of("--only boots").unwrap_err().contains("no load 'boots'"));
        assert!(of("--rounds many").unwrap_err().contains("'many'"));
        assert!(of("--rounds").unwrap_err().contains("needs something"));
        assert!(of("--loud").unwrap_err().contains("'--loud'"));
        assert!(parse(["--quick".to_owned()].into_iter(), &[]).is_err());
        assert_eq!(of("--help").unwrap(), None);
    }
}
