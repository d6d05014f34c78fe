//! Numbers that a person reads.

use figures::statistics::{Estimate, median};

/// Three digits that count.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// `0.97 (0.95 to 0.99)`; of fewer rounds than an interval needs, the range that was seen.
pub(crate) fn interval(estimate: Estimate, rounds: &[f64]) -> String {
    let (low, high) = if estimate.is_trusted() {
        (estimate.low, estimate.high)
    } else {
        rounds.iter().fold((f64::MAX, f64::MIN), |(low, high), &v| (low.min(v), high.max(v)))
    };
    format!("{} ({} to {})", number(estimate.value), number(low), number(high))
}

/// The median in a unit, `-` of nothing.
pub(crate) fn middle(rounds: &[f64], unit: f64) -> String {
    if rounds.is_empty() { "-".to_owned() } else { number(median(rounds) / unit) }
}

/// The median and the range, `-` of nothing: of ratios.
pub(crate) fn ratio(rounds: &[f64]) -> String {
    match figures::statistics::estimate(&[rounds.to_vec()]) {
        Some(estimate) => interval(estimate, rounds),
        None => "-".to_owned(),
    }
}

/// A table: its head, and rows of as many cells. The first column is words.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let mut text = format!("| {} |\n|---|{}\n", head.join(" | "), "---:|".repeat(head.len() - 1));
    for row in rows {
        text.push_str(&format!("| {} |\n", row.join(" | ")));
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_count() {
        let shown = [0.0, 0.9744, 1.234, 12.34, 1234.0].map(number);
        assert_eq!(shown, ["0.000", "0.974", "1.23", "12.3", "1234"]);
    }

    #[test]
    fn few_rounds_show_their_range() {
        assert_eq!(ratio(&[1.0, 3.0, 2.0]), "2.00 (1.00 to 3.00)");
        assert_eq!(ratio(&[]), "-");
        assert_eq!(middle(&[3e6, 1e6, 2e6], 1e6), "2.00");
        assert_eq!(middle(&[], 1.0), "-");
    }

    #[test]
    fn tables_are_of_equal_cells() {
        let text = table(&["a", "b"], &[vec!["x".to_owned(), "1".to_owned()]]);
        assert_eq!(text, "| a | b |\n|---|---:|\n| x | 1 |\n\n");
    }
}
