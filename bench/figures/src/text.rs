//! Numbers and tables that a person reads, in Markdown.

use crate::statistics::Estimate;

/// Formats a number with few digits, in `k` from ten thousand on and in `M` from a million on.
pub fn number(value: f64) -> String {
    match value.abs() {
        v if v >= 1e6 => format!("{}M", number(value / 1e6)),
        v if v >= 1e4 => format!("{}k", number(value / 1e3)),
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// Formats a value and its interval: `0.970 (0.950 to 0.990)`. With too few rounds for an interval,
/// formats the range of the rounds. With one round, formats only the value.
pub fn interval(estimate: Estimate) -> String {
    let Estimate { value, low, high, least, most, rounds } = estimate;
    let (low, high) = if estimate.is_trusted() { (low, high) } else { (least, most) };
    match rounds {
        0 | 1 if value.fract() == 0.0 && value.abs() < 1e4 => format!("{value}"),
        0 | 1 => number(value),
        _ => format!("{} ({} to {})", number(value), number(low), number(high)),
    }
}

/// Makes a table: its head, and rows of as many cells. The first column has words.
pub fn table<Cell: AsRef<str>>(head: &[&str], rows: &[Vec<Cell>]) -> String {
    let mut text = format!("| {} |\n|---|{}\n", head.join(" | "), "---:|".repeat(head.len() - 1));
    for row in rows {
        let cells: Vec<&str> = row.iter().map(AsRef::as_ref).collect();
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::of_rounds;

    #[test]
    fn three_digits_count() {
        let shown = [0.0, 0.9744, 1.234, 12.34, 1234.0, 12_340.0, 123_400.0, 12_340_000.0];
        let shown = shown.map(number);
        assert_eq!(shown, ["0.000", "0.974", "1.23", "12.3", "1234", "12.3k", "123k", "12.3M"]);
    }

    #[test]
    fn few_rounds_show_their_range_and_one_has_none() {
        let shown = |rounds: &[f64]| interval(of_rounds(rounds).unwrap());
        assert_eq!(shown(&[1.0, 3.0, 2.0]), "2.00 (1.00 to 3.00)");
        assert_eq!(shown(&[0.5; 6]), "0.500 (0.500 to 0.500)");
        assert_eq!((shown(&[60.0]), shown(&[2.5])), ("60".to_owned(), "2.50".to_owned()));
    }

    #[test]
    fn tables_are_of_equal_cells() {
        let text = table(&["a", "b"], &[vec!["x", "1"]]);
        assert_eq!(text, "| a | b |\n|---|---:|\n| x | 1 |\n\n");
    }
}
