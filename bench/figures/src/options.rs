//! Numbers and libraries of a command line: an error says which word is wrong, and what it may be.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// The number that `word` is, for the option `what`.
pub fn number<T: FromStr + PartialOrd + Display>(
    word: &str,
    what: &str,
    range: RangeInclusive<T>,
) -> Result<T, String> {
    word.parse().ok().filter(|number| range.contains(number)).ok_or_else(|| {
        format!("{what}: '{word}' is no number from {} to {}", range.start(), range.end())
    })
}

/// The numbers of a list with commas; one that is there twice counts once.
pub fn numbers<T: FromStr + PartialOrd + Display + Clone>(
    list: &str,
    what: &str,
    range: RangeInclusive<T>,
) -> Result<Vec<T>, String> {
    let mut all = Vec::new();
    for word in list.split(',') {
        let value = number(word, what, range.clone())?;
        if !all.contains(&value) {
            all.push(value);
        }
    }
    Ok(all)
}

/// A library to preload, as `heapwright bench --with` takes it and bench/peers prints it,
/// `NAME=[VAR=VALUE ...]PATH`: its name, and the environment that it needs.
pub fn library(line: &str) -> Result<(String, Vec<String>), String> {
    let wrong = || format!("--with: '{line}' is no NAME=[VAR=VALUE ...]/PATH/TO/LIBRARY");
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
        assert_eq!(number("7", "--rounds", 1..=9), Ok(7));
        assert_eq!(numbers("2,40,2", "--threads", 1..=80), Ok(vec![2, 40]));
        let wrong = |word| number(word, "--rounds", 1_u32..=9).unwrap_err();
        assert_eq!(wrong("0"), "--rounds: '0' is no number from 1 to 9");
        assert!(wrong("many").contains("'many'") && wrong("-1").contains("'-1'"));
        assert!(numbers("2,x", "--threads", 1..=80).unwrap_err().contains("'x'"));
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
