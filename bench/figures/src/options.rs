//! Numbers of a command line: an error says which word is wrong, and what it may be.

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
}
