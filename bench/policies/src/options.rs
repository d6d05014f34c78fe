//! The race's command line.
//!
//! A word that is not understood ends it before anything has run: a race takes long.

use std::path::PathBuf;

use policies::{ALL, CHOSEN, Variant, find};

use crate::USAGE;

/// What is run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Program {
    /// t-test1's like: threads at a time are a column each.
    Ttest1(Ttest1),
    /// Any program, and the name of a number that it prints.
    Any { words: Vec<String>, figure: Option<String> },
}

/// How t-test1's like is run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Ttest1 {
    pub(crate) path: PathBuf,
    /// Which calls it times.
    pub(crate) clock: String,
    pub(crate) threads: Vec<usize>,
    pub(crate) total: Option<usize>,
    pub(crate) actions: usize,
    pub(crate) limit: usize,
}

/// What is asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Options {
    pub(crate) library: PathBuf,
    pub(crate) program: Program,
    pub(crate) caches: Vec<usize>,
    pub(crate) variants: Vec<&'static Variant>,
    pub(crate) rounds: usize,
    pub(crate) seconds: usize,
    pub(crate) keep: Option<PathBuf>,
}

fn number(word: &str, what: &str, most: usize) -> Result<usize, String> {
    word.parse()
        .ok()
        .filter(|number| (1..=most).contains(number))
        .ok_or_else(|| format!("{what} wants a number from 1 to {most}, not '{word}'"))
}

fn numbers(words: &str, what: &str, most: usize) -> Result<Vec<usize>, String> {
    words.split(',').map(|word| number(word, what, most)).collect()
}

/// An existing file's whole path: the program runs elsewhere, perhaps.
fn file(word: &str, what: &str) -> Result<PathBuf, String> {
    std::fs::canonicalize(word).map_err(|e| format!("{what}: cannot find {word}: {e}"))
}

impl Options {
    pub(crate) fn parse(words: &[String]) -> Result<Self, String> {
        let mut library = None;
        let mut ttest1 = None;
        let mut any = None;
        let mut figure = None;
        let mut clock = "all".to_owned();
        let (mut threads, mut total, mut actions, mut limit) =
            (vec![40, 80], None, 20_000, 100_000);
        let (mut caches, mut rounds, mut seconds) = (vec![2, 8, 32], 9, 300);
        let mut variants: Vec<&'static Variant> = ALL.iter().collect();
        let mut keep = None;
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if word == "--program" {
                let mut rest: Vec<String> = words.by_ref().cloned().collect();
                let program = rest.first_mut().ok_or("--program wants a program")?;
                // A name without a slash is looked for by the system.
                if program.contains('/') {
                    *program = file(program, word)?.to_string_lossy().into_owned();
                }
                any = Some(rest);
                continue;
            }
            let mut value = || {
                words
                    .next()
                    .ok_or_else(|| format!("'{word}' is unknown, or wants a value\n{USAGE}"))
            };
            match word.as_str() {
                "--library" => library = Some(file(value()?, word)?),
                "--ttest1" => ttest1 = Some(file(value()?, word)?),
                "--figure" => figure = Some(value()?.clone()),
                "--clock" => clock.clone_from(value()?),
                "--caches" => caches = numbers(value()?, word, 4096)?,
                "--threads" => threads = numbers(value()?, word, 4096)?,
                "--total" => total = Some(number(value()?, word, 1_000_000)?),
                "--actions" => actions = number(value()?, word, 1_000_000_000)?,
                "--limit" => limit = number(value()?, word, 1 << 30)?,
                "--rounds" => rounds = number(value()?, word, 1000)?,
                "--seconds" => seconds = number(value()?, word, 1_000_000)?,
                "--keep" => keep = Some(PathBuf::from(value()?)),
                "--variants" => variants = chosen(value()?)?,
                _ => return Err(format!("'{word}' is unknown\n{USAGE}")),
            }
        }
        let program = match (ttest1, any) {
            (Some(path), None) if figure.is_none() => {
                Program::Ttest1(Ttest1 { path, clock, threads, total, actions, limit })
            }
            (Some(_), None) => return Err("--figure belongs to --program".to_owned()),
            (None, Some(words)) => Program::Any { words, figure },
            _ => return Err(format!("either --ttest1 or --program says what is run\n{USAGE}")),
        };
        let library = library.ok_or("--library is missing: libheapwright_policies.so")?;
        Ok(Self { library, program, caches, variants, rounds, seconds, keep })
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
    fn all_by_default() {
        let options = parse("--library /dev/null --ttest1 /bin/sh").unwrap();
        assert_eq!((options.caches, options.rounds), (vec![2, 8, 32], 9));
        assert_eq!(options.variants.len(), ALL.len());
        let Program::Ttest1(Ttest1 { threads, .. }) = options.program else {
            panic!("it is ttest1")
        };
        assert_eq!(threads, [40, 80]);
    }

    #[test]
    fn the_librarys_own_is_always_there_and_none_twice() {
        let options =
            parse("--library /dev/null --ttest1 /bin/sh --variants before,stay,before").unwrap();
        let names: Vec<_> = options.variants.iter().map(|variant| variant.name).collect();
        assert_eq!(names, [CHOSEN, "before", "stay"]);
    }

    #[test]
    fn what_follows_program_is_the_programs() {
        let options =
            parse("--library /dev/null --figure x --caches 2 --program sort --caches 3").unwrap();
        let words = ["sort", "--caches", "3"].map(str::to_owned).to_vec();
        assert_eq!(options.program, Program::Any { words, figure: Some("x".into()) });
        assert_eq!(options.caches, [2]);
    }

    #[test]
    fn what_is_wrong_is_said_in_a_line() {
        let wrong = |line: &str| parse(line).unwrap_err().lines().next().unwrap().to_owned();
        assert_eq!(
            wrong("--library /dev/null --ttest1 /bin/sh --variants best"),
            "'best' is no policy; `policies list` shows the names"
        );
        assert_eq!(
            wrong("--library /dev/null --ttest1 /bin/sh --caches 2,0"),
            "--caches wants a number from 1 to 4096, not '0'"
        );
        assert!(
            wrong("--library /nowhere/x.so").starts_with("--library: cannot find /nowhere/x.so")
        );
        assert_eq!(wrong("--ttest1 /bin/sh"), "--library is missing: libheapwright_policies.so");
        assert_eq!(wrong("--library /dev/null"), "either --ttest1 or --program says what is run");
        assert_eq!(wrong("--library /dev/null --fast 1"), "'--fast' is unknown");
        assert_eq!(wrong("--library"), "'--library' is unknown, or wants a value");
        assert_eq!(
            wrong("--library /dev/null --ttest1 /bin/sh --figure x"),
            "--figure belongs to --program"
        );
    }
}
