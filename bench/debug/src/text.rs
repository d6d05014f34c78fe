//! Cells of tables: numbers that a person reads.

use std::fmt::Write as _;

/// Three digits that count.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Milliseconds.
pub(crate) fn ms(ns: f64) -> String {
    format!("{} ms", number(ns / 1e6))
}

/// MiB.
pub(crate) fn mib(kib: f64) -> String {
    format!("{:.1} MiB", kib / 1024.0)
}

/// A table of Markdown; the first column is text, the others are numbers.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let mut text = format!("| {} |\n|---|{}\n", head.join(" | "), "--:|".repeat(head.len() - 1));
    for row in rows {
        let _ = writeln!(text, "| {} |", row.join(" | "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells() {
        assert_eq!([0.0123, 1.234, 12.34, 123.4].map(number), ["0.01", "1.23", "12.3", "123"]);
        assert_eq!((ms(1.5e6), mib(2048.0)), ("1.50 ms".to_owned(), "2.0 MiB".to_owned()));
        let rows = [vec!["x".to_owned(), "1".to_owned()]];
        assert_eq!(table(&["a", "b"], &rows), "| a | b |\n|---|--:|\n| x | 1 |\n");
    }
}
