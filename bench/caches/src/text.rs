//! Numbers that a person reads.

use figures::statistics::Estimate;

/// Three digits that count; thousands and millions as `k` and `M`.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        v if v >= 1e6 => format!("{}M", number(value / 1e6)),
        v if v >= 1e4 => format!("{}k", number(value / 1e3)),
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// `0.97 (0.95 to 0.99)`; without the interval where it means nothing.
pub(crate) fn interval(estimate: Estimate) -> String {
    if estimate.is_trusted() {
        format!(
            "{} ({} to {})",
            number(estimate.value),
            number(estimate.low),
            number(estimate.high)
        )
    } else {
        number(estimate.value)
    }
}

/// What XML must not contain, in its words.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_count() {
        let shown = [0.0, 0.974, 12.34, 1234.0, 12_340.0, 123_400.0, 12_340_000.0].map(number);
        assert_eq!(shown, ["0.00", "0.97", "12.3", "1234", "12.3k", "123k", "12.3M"]);
    }

    #[test]
    fn few_rounds_have_no_interval() {
        let estimate = |rounds| Estimate { value: 0.97, low: 0.95, high: 0.99, rounds };
        assert_eq!(interval(estimate(10)), "0.97 (0.95 to 0.99)");
        assert_eq!(interval(estimate(3)), "0.97");
    }

    #[test]
    fn xml() {
        assert_eq!(escape("a<b> & \"c\""), "a&lt;b&gt; &amp; &quot;c&quot;");
    }
}
