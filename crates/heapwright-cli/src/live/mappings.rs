//! Mappings of a process outside the heap, by kind, from /proc/PID/smaps.

use super::Reported;
use std::collections::BTreeMap;
use std::fs;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mappings {
    /// Bytes outside the heap, by name, the largest first.
    pub(crate) others: Vec<(String, u64)>,
    /// Bytes of the heap in huge pages.
    pub(crate) huge: u64,
}

impl Mappings {
    /// Reads a process's mappings; empty if that is not allowed.
    pub(crate) fn of(pid: u32, report: &Reported) -> Self {
        let text = fs::read(format!("/proc/{pid}/smaps")).unwrap_or_default();
        let facts = &report.facts;
        let ours = [
            (facts.window_at, facts.window_used),
            (facts.table_at, facts.table_bytes),
            (facts.records_at, facts.records_bytes),
            (facts.bitmaps_at, facts.bitmaps_bytes),
        ];
        let mut all = Self::parse(&String::from_utf8_lossy(&text), &ours);
        if facts.window_at == 0 {
            // If the heap's address is unknown, its mappings are among the anonymous ones.
            all.others.retain(|(name, _)| *name != called(""));
        }
        all
    }

    fn parse(smaps: &str, ours: &[(u64, u64)]) -> Self {
        let mut all: BTreeMap<String, u64> = BTreeMap::new();
        let (mut name, mut is_ours, mut huge) = (None, false, 0);
        for line in smaps.lines() {
            let mut words = line.split_ascii_whitespace();
            let Some(first) = words.next() else { continue };
            let kib = |mut words: std::str::SplitAsciiWhitespace<'_>| {
                words.next().and_then(|text| text.parse::<u64>().ok()).unwrap_or(0) * 1024
            };
            match first {
                "Rss:" if !is_ours => {
                    *all.entry(name.clone().unwrap_or_default()).or_default() += kib(words);
                }
                "AnonHugePages:" if is_ours => huge += kib(words),
                _ if first.ends_with(':') => {}
                _ => {
                    let Some((start, end)) = first.split_once('-') else { continue };
                    let hex = |text| u64::from_str_radix(text, 16).unwrap_or(0);
                    let (start, end) = (hex(start), hex(end));
                    let within = |&(at, bytes): &(u64, u64)| {
                        at != 0 && start < at.saturating_add(bytes) && at < end
                    };
                    is_ours = ours.iter().any(within);
                    // The fields before the name: access, offset, device, inode. A name may contain
                    // spaces.
                    let path = line.splitn(6, ' ').nth(5).unwrap_or_default().trim_start();
                    name = Some(called(path));
                }
            }
        }
        let mut others: Vec<(String, u64)> =
            all.into_iter().filter(|(_, bytes)| *bytes > 0).collect();
        others.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        Self { others, huge }
    }
}

fn called(path: &str) -> String {
    match path {
        "" => "memory of the program's and a runtime's mappings, and thread stacks".to_owned(),
        "[heap]" => "the C library's own heap (brk)".to_owned(),
        "[stack]" => "the first thread's stack".to_owned(),
        path => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_summed_by_name() {
        let smaps = "\
1000-2000 r-xp 00000000 08:01 1   /usr/lib/a b.so
Rss:                   8 kB
2000-3000 rw-p 00000000 08:01 1   /usr/lib/a b.so
Rss:                   4 kB
5000-9000 rw-p 00000000 00:00 0 
Rss:                 100 kB
AnonHugePages:        64 kB
a000-b000 rw-p 00000000 00:00 0 
Rss:                   1 kB
AnonHugePages:        32 kB
";
        let found = Mappings::parse(smaps, &[(0x6000, 0x100)]);
        let names: Vec<_> =
            found.others.iter().map(|(name, bytes)| (name.as_str(), *bytes)).collect();
        assert_eq!(names[0], ("/usr/lib/a b.so", 12 << 10));
        assert_eq!((names[1].1, found.huge), (1 << 10, 64 << 10));
        assert_eq!(Mappings::parse("rubbish", &[]), Mappings::default());
    }
}
