//! Bars: a share of a width, drawn with the characters of the terminal.
//!
//! With block characters a bar is exact to an eighth of a letter. A share above zero always shows.

use super::Look;

pub(super) const WIDTH: usize = 28;

/// Returns a bar for a share, which is clamped to 0 to 1.
pub(super) fn bar(share: f64, look: Look) -> String {
    let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
    let drawn = if look.unicode { blocks(share) } else { letters(share) };
    look.drawn(&drawn)
}

fn blocks(share: f64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share * (8 * WIDTH) as f64).round() as usize;
    let eighths = if share > 0.0 { eighths.max(1) } else { 0 };
    "█".repeat(eighths / 8) + EIGHTHS[eighths % 8]
}

fn letters(share: f64) -> String {
    let whole = (share * WIDTH as f64).round() as usize;
    if share > 0.0 && whole == 0 { String::from(".") } else { "#".repeat(whole) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNICODE: Look = Look { colour: false, unicode: true };

    #[test]
    fn a_bar_is_its_share_of_the_width() {
        assert_eq!(bar(1.0, Look::PLAIN), "############################");
        assert_eq!(bar(0.5, Look::PLAIN), "##############");
        assert_eq!(bar(0.5, UNICODE), "██████████████");
        assert_eq!(bar(0.51, UNICODE), "██████████████▎");
        assert_eq!(bar(1.0, UNICODE).chars().count(), WIDTH);
    }

    #[test]
    fn little_is_not_nothing() {
        assert_eq!(bar(0.0, Look::PLAIN), "");
        assert_eq!(bar(0.0, UNICODE), "");
        assert_eq!(bar(1e-9, Look::PLAIN), ".");
        assert_eq!(bar(1e-9, UNICODE), "▏");
    }

    #[test]
    fn impossible_shares_are_cut() {
        assert_eq!(bar(f64::NAN, Look::PLAIN), "");
        assert_eq!(bar(-1.0, Look::PLAIN), "");
        assert_eq!(bar(7.0, Look::PLAIN).len(), WIDTH);
    }
}
