//! Reads a checker's final report on stderr. There are two forms:
//!
//! ```text
//! ==1==    definitely lost: 1,230 bytes in 10 blocks         valgrind and heapwright,
//! ==1== ERROR SUMMARY: 3 errors from 2 contexts (...)        each process or all in one
//! ==1==ERROR: AddressSanitizer: heap-use-after-free on ...   the sanitizers, and only
//! Direct leak of 1230 byte(s) in 10 object(s) allocated from:     if there is something
//! ```
//!
//! Heapwright also writes `Direct leak` lines. With an `ERROR SUMMARY` these do not count.

/// The counts of a checker's report.
#[derive(Debug, PartialEq)]
pub struct Reported {
    /// The number of different errors.
    pub errors: f64,
    /// The number of lost blocks.
    pub lost_blocks: f64,
}

impl Reported {
    /// Reads a program's stderr. Returns `None` if it contains no report of a checker.
    pub fn of(stderr: &str) -> Option<Self> {
        let total = |before: &str, between: &str| -> Option<f64> {
            let numbers: Vec<f64> =
                stderr.lines().filter_map(|line| second(line, before, between)).collect();
            (!numbers.is_empty()).then(|| numbers.iter().sum())
        };
        if let Some(errors) = total("ERROR SUMMARY: ", " errors from ") {
            let lost_blocks = total("definitely lost: ", " bytes in ").unwrap_or(0.0);
            return Some(Self { errors, lost_blocks });
        }
        let errors = stderr.lines().filter(|line| line.contains("ERROR: AddressSanitizer: "));
        let errors = errors.count() as f64;
        let lost_blocks = total("Direct leak of ", " byte(s) in ");
        (errors > 0.0 || lost_blocks.is_some())
            .then_some(Self { errors, lost_blocks: lost_blocks.unwrap_or(0.0) })
    }
}

fn second(line: &str, before: &str, between: &str) -> Option<f64> {
    let (_, rest) = line.split_once(before)?.1.split_once(between)?;
    let digits = rest.split_whitespace().next()?.replace(',', "");
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(stderr: &str) -> Option<(f64, f64)> {
        Reported::of(stderr).map(|reported| (reported.errors, reported.lost_blocks))
    }

    #[test]
    fn of_each_form() {
        let sums = "Direct leak of 9 byte(s) in 7 object(s) allocated from:\n\
                    ==1==    definitely lost: 4,096 bytes in 1,024 blocks\n\
                    ==1== ERROR SUMMARY: 30 errors from 2 contexts (suppressed: 0 from 0)\n";
        assert_eq!(reported(sums), Some((2.0, 1024.0)));
        assert_eq!(reported(&sums.repeat(2)), Some((4.0, 2048.0)));
        assert_eq!(reported("==1== ERROR SUMMARY: 0 errors from 0 contexts\n"), Some((0.0, 0.0)));
        let sanitizer = "==1==ERROR: LeakSanitizer: detected memory leaks\n\
                         Direct leak of 9 byte(s) in 7 object(s) allocated from:\n";
        assert_eq!(reported(sanitizer), Some((0.0, 7.0)));
        assert_eq!(
            reported("==1==ERROR: AddressSanitizer: heap-use-after-free\n"),
            Some((1.0, 0.0))
        );
        assert_eq!(reported("a word\n"), None);
    }
}
