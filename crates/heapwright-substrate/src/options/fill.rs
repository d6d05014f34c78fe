//! The option `fill`: the content of uninitialised bytes in the debug heap's fresh blocks.
//!
//! ```text
//! fill=off                       the earlier contents of the memory
//! fill=0                         zeros
//! fill=1, fill=2                 bytes that depend on site and block; fill=2 inverts each bit
//!   :list                        the record lists each site with blocks
//!   :before-SITE.BLOCK.BYTE      bytes before this point hold the pattern, the rest zeros
//!   :without-SITE                blocks of this site hold zeros
//!   :at-SITE.BLOCK.BYTE          reports the block: undefined bytes are read from BYTE on
//! ```
//!
//! `heapwright check --twice` runs a program with several patterns. The parts behind `:` let it
//! find the bytes that make a difference. SITE is the number of a stack, in hexadecimal, and is the
//! same in each run (`debug::flagged`). BLOCK counts the blocks of a site, and BYTE the bytes of a
//! block, from 0. Points are ordered by site, block and byte. `debug` reads the option.

use super::Wrong;

/// The most sites and points in an option.
pub const MOST_NAMED: usize = 8;

/// An uninitialised byte: its site, its block and its offset.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Point {
    /// The site.
    pub site: u64,
    /// The number of the block at its site.
    pub block: u64,
    /// The offset of the byte in the block.
    pub byte: u64,
}

impl Point {
    /// A point behind all others.
    pub const END: Self = Self { site: u64::MAX, block: u64::MAX, byte: u64::MAX };
}

/// The content of uninitialised bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fill {
    /// The number of the pattern; 0: zeros. `None`: the bytes stay as they are.
    pub seed: Option<u32>,
    /// Whether sites are listed in the record.
    pub lists: bool,
    /// Bytes from this point on are zeros.
    pub before: Point,
    without: [u64; MOST_NAMED],
    at: [Point; MOST_NAMED],
    counts: (usize, usize),
}

impl Fill {
    pub(super) const DEFAULT: Self = Self {
        seed: None,
        lists: false,
        before: Point::END,
        without: [0; MOST_NAMED],
        at: [Point::END; MOST_NAMED],
        counts: (0, 0),
    };

    /// The sites whose blocks hold zeros.
    #[must_use]
    pub fn without(&self) -> &[u64] {
        &self.without[..self.counts.0]
    }

    /// The points whose blocks are findings.
    #[must_use]
    pub fn at(&self) -> &[Point] {
        &self.at[..self.counts.1]
    }

    fn parse(value: &[u8]) -> Option<Self> {
        let mut fill = Self::DEFAULT;
        let mut words = value.split(|&byte| byte == b':');
        let seed = words.next()?;
        if seed == b"off" {
            return words.next().is_none().then_some(fill);
        }
        fill.seed = Some(u32::try_from(decimal(seed)?).ok()?);
        for word in words {
            if word == b"list" {
                fill.lists = true;
            } else if let Some(before) = word.strip_prefix(b"before-") {
                fill.before = point(before)?;
            } else if let Some(site) = word.strip_prefix(b"without-") {
                *fill.without.get_mut(fill.counts.0)? = hexadecimal(site)?;
                fill.counts.0 += 1;
            } else {
                *fill.at.get_mut(fill.counts.1)? = point(word.strip_prefix(b"at-")?)?;
                fill.counts.1 += 1;
            }
        }
        Some(fill)
    }
}

pub(super) fn set(fill: &mut Fill, name: &[u8], value: &[u8]) -> Option<Result<(), Wrong>> {
    if name != b"fill" {
        return None;
    }
    const WRONG: &str = "must be off, 0 (zeros), or the number of a pattern: fill=1";
    let parsed = Fill::parse(value).ok_or(Wrong::Value(WRONG));
    Some(parsed.map(|parsed| *fill = parsed))
}

/// `SITE.BLOCK.BYTE`.
fn point(text: &[u8]) -> Option<Point> {
    let mut parts = text.split(|&byte| byte == b'.');
    let point = Point {
        site: hexadecimal(parts.next()?)?,
        block: decimal(parts.next()?)?,
        byte: decimal(parts.next()?)?,
    };
    parts.next().is_none().then_some(point)
}

fn decimal(text: &[u8]) -> Option<u64> {
    digits(text, 10)
}

fn hexadecimal(text: &[u8]) -> Option<u64> {
    digits(text, 16)
}

fn digits(text: &[u8], base: u32) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |number, &byte| {
        let digit = (byte as char).to_digit(base)?;
        number.checked_mul(u64::from(base))?.checked_add(u64::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_check_asks_for_is_understood() {
        assert_eq!(Fill::parse(b"off"), Some(Fill::DEFAULT));
        let zeros = Fill::parse(b"0").unwrap();
        assert_eq!((zeros.seed, zeros.before, zeros.lists), (Some(0), Point::END, false));
        let fill = Fill::parse(b"2:before-ff.3.18:without-a:without-b:list:at-1.2.3").unwrap();
        assert_eq!((fill.seed, fill.lists), (Some(2), true));
        assert_eq!(fill.before, Point { site: 255, block: 3, byte: 18 });
        assert_eq!(fill.without(), [10, 11]);
        assert_eq!(fill.at(), [Point { site: 1, block: 2, byte: 3 }]);
        let last = b"1:before-ffffffffffffffff.18446744073709551615.18446744073709551615";
        assert_eq!(Fill::parse(last).unwrap().before, Point::END);
    }

    #[test]
    fn anything_else_is_refused() {
        for wrong in [
            "",
            "x",
            "-1",
            "off:list",
            "4294967296",
            "1:",
            "1:lists",
            "1:before-",
            "1:before-1.2",
            "1:at-1.2.3.4",
            "1:at-g.0.0",
            "1:without-10000000000000000",
            "1:before-1.x.2",
            "0:without-1:without-1:without-1:without-1:without-1:without-1:without-1:without-1:without-1",
        ] {
            assert_eq!(Fill::parse(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn points_are_in_order() {
        let point = |site, block, byte| Point { site, block, byte };
        assert!(point(1, 9, 9) < point(2, 0, 0) && point(1, 1, 9) < point(1, 2, 0));
        assert!(point(1, 1, 1) < point(1, 1, 2) && point(9, 9, 9) < Point::END);
    }
}
