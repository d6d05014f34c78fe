//! Finds the uninitialised byte that makes a difference, by binary search.
//!
//! ```text
//! point    all uninitialised bytes before the point hold the pattern, the others zeros
//!
//!          |--------- no difference ---------|P|----- a difference -----|
//! sites    . . . . . . . . . . . . . . . . . . S . . . . . . . . . . . .      by their keys
//! blocks                       of S:   . . . . B . . . .                      doubling, halving
//! bytes                                of B:   . . Y . .                      doubling, halving
//! ```
//!
//! If a point makes no difference and a later one does, so do two adjacent points between them. The
//! byte between these two makes the difference. The search finds such a byte; to find another, the
//! caller searches again without its site. The caller's closure runs the program.

use std::fmt;

/// An uninitialised byte: its site, the block's number there, and its offset in the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Point {
    pub(super) site: u64,
    pub(super) block: u64,
    pub(super) byte: u64,
}

impl Point {
    /// The point behind all bytes.
    pub(super) const END: Self = Self { site: u64::MAX, block: u64::MAX, byte: u64::MAX };

    pub(super) fn next(self) -> Self {
        Self { byte: self.byte + 1, ..self }
    }
}

impl fmt::Display for Point {
    /// Writes the point in the syntax of option `fill`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}.{}.{}", self.site, self.block, self.byte)
    }
}

/// Finds a byte for which `differs` is false, and true for the next byte. `differs` must be true
/// for [`Point::END`], and `sites` sorted. Returns `None` if these sites make no difference.
pub(super) fn find<E>(
    sites: &[u64],
    differs: &mut dyn FnMut(Point) -> Result<bool, E>,
) -> Result<Option<Point>, E> {
    let all_of = |site: u64| Point { site, ..Point::END };
    let (mut low, mut high) = (0, sites.len());
    // The pattern in all sites below `low` makes no difference. Up to and including `high`, or in
    // all bytes if `high` is the end, it makes one.
    while low < high {
        let middle = usize::midpoint(low, high);
        if differs(all_of(sites[middle]))? {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    let Some(&site) = sites.get(high) else { return Ok(None) };
    let block = first(&mut |count| differs(Point { site, block: count, byte: 0 }))?;
    let byte = first(&mut |count| differs(Point { site, block, byte: count }))?;
    Ok(Some(Point { site, block, byte }))
}

/// Finds a number n for which `differs(n)` is false and `differs(n + 1)` is true.
fn first<E>(differs: &mut dyn FnMut(u64) -> Result<bool, E>) -> Result<u64, E> {
    const MOST: u64 = 1 << 48;
    let (mut without, mut with) = (0, 1);
    while with < MOST && !differs(with)? {
        (without, with) = (with, with * 2);
    }
    while with - without > 1 {
        let middle = u64::midpoint(without, with);
        if differs(middle)? {
            with = middle;
        } else {
            without = middle;
        }
    }
    Ok(without)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the result if the bytes `guilty` make a difference, and the number of runs.
    fn found(sites: &[u64], guilty: &[Point]) -> (Option<Point>, usize) {
        let mut runs = 0;
        let result = find::<()>(sites, &mut |point| {
            runs += 1;
            Ok(guilty.iter().any(|byte| *byte < point))
        });
        (result.expect("no run fails"), runs)
    }

    #[test]
    fn one_byte_is_found_in_few_runs() {
        let sites: Vec<u64> = (0..1000).map(|site| site * 977 + 5).collect();
        for site in [5, 977 * 500 + 5, 977 * 999 + 5] {
            for block in [0, 1, 2, 63, 1_000_000] {
                for byte in [0, 7, 4095] {
                    let guilty = Point { site, block, byte };
                    let (point, runs) = found(&sites, &[guilty]);
                    assert_eq!(point, Some(guilty));
                    assert!(runs <= 10 + 42 + 26, "{runs}");
                }
            }
        }
        let (_, runs) = found(&[1, 2, 3, 4], &[Point { site: 3, block: 0, byte: 0 }]);
        assert!(runs <= 5, "{runs}");
    }

    #[test]
    fn of_several_one_is_found_and_of_unknown_sites_none() {
        let guilty = [Point { site: 4, block: 2, byte: 9 }, Point { site: 4, block: 1, byte: 30 }];
        assert_eq!(found(&[1, 4, 9], &guilty).0, Some(guilty[1]));
        assert_eq!(found(&[1, 4, 9], &[Point { site: 20, block: 0, byte: 0 }]).0, None);
        assert_eq!(found(&[], &guilty).0, None);
    }

    #[test]
    fn what_takes_two_bytes_is_found_at_the_second() {
        let (one, two) =
            (Point { site: 2, block: 0, byte: 0 }, Point { site: 3, block: 5, byte: 1 });
        let result = find::<()>(&[1, 2, 3], &mut |point| Ok(one < point && two < point));
        assert_eq!(result, Ok(Some(two)));
    }

    #[test]
    fn points_are_written_as_the_option_reads_them() {
        let point = Point { site: 0xabc, block: 10, byte: 3 };
        assert_eq!(point.to_string(), "abc.10.3");
        assert_eq!(point.next(), Point { byte: 4, ..point });
        assert_eq!(
            Point::END.to_string(),
            "ffffffffffffffff.18446744073709551615.18446744073709551615"
        );
    }
}
