//! Formats bytes, counts, shares, durations and dates, the same everywhere.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Formats `1536` as `1.5 KiB`.
pub(super) fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    // A value that rounds to 1024.0 becomes 1.0 of the next unit.
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// Formats `1536` as `+1.5 KiB`, `-1` as `-1 B`, `0` as `0 B`.
pub(super) fn difference(difference: i64) -> String {
    let sign = match difference {
        ..0 => "-",
        0 => "",
        1.. => "+",
    };
    format!("{sign}{}", bytes(difference.unsigned_abs()))
}

/// Formats `1536` as `1.5K`, for tables.
pub(super) fn short(value: u64) -> String {
    let text = bytes(value);
    match text.split_once(' ') {
        Some((number, unit)) if unit != "B" => format!("{number}{}", &unit[..1]),
        _ => text.trim_end_matches(" B").to_owned(),
    }
}

/// Formats `16384` as `16 KiB`, for powers of two, which need no fraction.
pub(super) fn round_bytes(value: u64) -> String {
    bytes(value).replace(".0 ", " ")
}

/// Formats `1234567` as `1,234,567`.
pub(super) fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::new();
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Formats `1` and `"block"` as `1 block`, `2` as `2 blocks`; `2` and `"process"` as `2 processes`.
pub(super) fn counted(number: u64, thing: &str) -> String {
    let plural = match number {
        1 => "",
        _ if thing.ends_with('s') => "es",
        _ => "s",
    };
    format!("{} {thing}{plural}", count(number))
}

pub(super) fn clipped(text: &str, most: usize) -> String {
    match text.chars().count() <= most {
        true => text.to_owned(),
        false => text.chars().take(most - 3).chain("...".chars()).collect(),
    }
}

pub(super) fn percent(part: u64, whole: u64) -> String {
    format!("{:.1} %", share(part, whole) * 100.0)
}

/// Returns a part of a whole in percent, in the form of CSS and SVG.
pub(super) fn css(part: u64, whole: u64) -> String {
    format!("{:.3}%", share(part, whole).clamp(0.0, 1.0) * 100.0)
}

/// Returns a part of a whole; 0 if the whole is 0.
pub(super) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Formats a duration: `1.23 s`, `12.3 ms`, `3 min 5 s`.
pub(super) fn duration(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 0.999_5 {
        format!("{:.1} ms", seconds * 1000.0)
    } else if seconds < 99.95 {
        format!("{seconds:.2} s")
    } else {
        let whole = time.as_secs();
        format!("{} min {} s", whole / 60, whole % 60)
    }
}

/// Formats a time: `2026-01-02T03:04:05Z`.
pub(crate) fn rfc3339(time: SystemTime) -> String {
    const DAY: u64 = 86_400;
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (year, month, day) = date(seconds / DAY);
    let (hour, minute, second) = (seconds % DAY / 3600, seconds % 3600 / 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Formats nanoseconds since 1970: `2026-01-02 03:04:05`.
pub(super) fn date_of(ns: u64) -> String {
    rfc3339(UNIX_EPOCH + Duration::from_nanos(ns)).replace('T', " ").replace('Z', "")
}

/// Returns the year, month and day of a number of days since 1970.
///
/// Years begin in March, so a leap day is the last. Five months without February have 153 days.
fn date(days: u64) -> (u64, u64, u64) {
    const FROM_MARCH_0: u64 = 719_468;
    const ERA: u64 = 146_097;
    let days = days + FROM_MARCH_0;
    let (era, day) = (days / ERA, days % ERA);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + next, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_one_digit_behind_the_point() {
        for (value, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (1_048_575, "1.0 MiB"),
            (22_963_814, "21.9 MiB"),
            (3 << 30, "3.0 GiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(bytes(value), text);
        }
        assert_eq!((short(1023).as_str(), short(1536).as_str()), ("1023", "1.5K"));
        let differences = [1536, -1, 0].map(difference);
        assert_eq!(differences, ["+1.5 KiB", "-1 B", "0 B"]);
        assert_eq!(round_bytes(16), "16 B");
        assert_eq!(round_bytes(16 << 10), "16 KiB");
    }

    #[test]
    fn counts_are_grouped() {
        for (value, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(count(value), text);
        }
        assert_eq!(counted(1, "block"), "1 block");
        assert_eq!(counted(0, "block"), "0 blocks");
        assert_eq!(counted(4096, "free"), "4,096 frees");
        assert_eq!(counted(2, "process"), "2 processes");
    }

    #[test]
    fn shares_of_nothing_are_nothing() {
        assert_eq!(percent(1, 3), "33.3 %");
        assert_eq!(percent(3, 3), "100.0 %");
        assert_eq!(percent(0, 0), "0.0 %");
    }

    #[test]
    fn durations_fit_their_size() {
        for (ms, text) in [
            (0, "0.0 ms"),
            (12, "12.0 ms"),
            (999, "999.0 ms"),
            (1234, "1.23 s"),
            (99_900, "99.90 s"),
            (185_000, "3 min 5 s"),
        ] {
            assert_eq!(duration(Duration::from_millis(ms)), text);
        }
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_704_067_199, "2023-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(rfc3339(UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
    }
}
