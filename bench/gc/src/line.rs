//! What a program prints: lines `WORD NAME=VALUE ...`, the last one `result`.
//!
//! ```text
//!   rss request=100 ns=81234567 bytes=51234816
//!   pause bucket=18 count=1234
//!   result program=request wall_ns=812345678 cpu_ns=... peak=... checksum=... ...
//! ```
//!
//! Values are whole numbers; times are nanoseconds, sizes bytes.

use std::collections::BTreeMap;

/// The numbers of a line.
pub(crate) type Fields = BTreeMap<String, u64>;

/// The names that every result has.
const NEEDED: [&str; 4] = ["wall_ns", "cpu_ns", "peak", "checksum"];

fn fields(text: &str) -> Result<Fields, String> {
    let mut fields = Fields::new();
    for word in text.split_whitespace() {
        let Some((name, value)) = word.split_once('=') else {
            return Err(format!("'{word}' is no NAME=VALUE"));
        };
        if name == "program" {
            continue;
        }
        let value = value.parse().map_err(|_| format!("'{word}' has no whole number"))?;
        fields.insert(name.to_owned(), value);
    }
    Ok(fields)
}

/// The result, of all that was printed.
pub(crate) fn result(text: &str) -> Result<Fields, String> {
    let line = text.lines().last().and_then(|line| line.strip_prefix("result "));
    let fields = fields(line.ok_or("it printed no result")?)?;
    match NEEDED.iter().find(|&&name| !fields.contains_key(name)) {
        Some(name) => Err(format!("its result has no {name}")),
        None => Ok(fields),
    }
}

/// The lines that begin with a word.
pub(crate) fn series(text: &str, word: &str) -> Vec<Fields> {
    let lines = text.lines().filter_map(|line| line.strip_prefix(word)?.strip_prefix(' '));
    lines.filter_map(|line| fields(line).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "rss request=0 bytes=4096\nrss request=5 bytes=8192\n\
                        result program=x wall_ns=5 cpu_ns=4 peak=3 checksum=18446744073709551615\n";

    #[test]
    fn a_result_is_read() {
        let fields = result(SAID).unwrap();
        assert_eq!((fields["wall_ns"], fields["checksum"]), (5, u64::MAX));
    }

    #[test]
    fn a_series_is_read() {
        let series = series(SAID, "rss");
        assert_eq!(series.len(), 2);
        assert_eq!(series[1]["bytes"], 8192);
    }

    #[test]
    fn what_is_missing_is_named() {
        assert!(result("").unwrap_err().contains("no result"));
        assert!(result("result wall_ns=1 cpu_ns=2 peak=3").unwrap_err().contains("checksum"));
        assert!(result("result wall_ns=1.5").unwrap_err().contains("1.5"));
        assert!(result("result wall_ns").unwrap_err().contains("NAME=VALUE"));
    }
}
