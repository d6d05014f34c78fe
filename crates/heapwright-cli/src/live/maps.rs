//! The mappings of a process, from /proc/PID/maps.

use crate::symbols::is_heapwright;
use std::fs;
use std::io;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Mapping {
    from: u64,
    to: u64,
    can_be_read: bool,
    inode: u64,
    name: Vec<u8>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Maps(Vec<Mapping>);

impl Maps {
    /// Returns an error if the kernel refuses.
    pub(super) fn of(pid: u32) -> io::Result<Self> {
        fs::read(format!("/proc/{pid}/maps")).map(|text| Self::parse(&text))
    }

    fn parse(text: &[u8]) -> Self {
        let mapping = |line: &[u8]| {
            // The fields: addresses, access, offset, device, inode, name. A name may be any bytes.
            let mut fields = line.splitn(6, |&byte| byte == b' ');
            let mut field = || std::str::from_utf8(fields.next()?).ok();
            let (from, to) = field()?.split_once('-')?;
            let hex = |digits| u64::from_str_radix(digits, 16).ok();
            let (from, to, can_be_read) = (hex(from)?, hex(to)?, field()?.starts_with('r'));
            let inode = (field(), field(), field()).2?.parse().ok()?;
            let name = fields.next().unwrap_or_default().trim_ascii_start().to_vec();
            Some(Mapping { from, to, can_be_read, inode, name })
        };
        Self(text.split(|&byte| byte == b'\n').filter_map(mapping).collect())
    }

    /// Returns whether the segment `id` of System V shared memory, which has no key, is mapped.
    pub(super) fn has_segment(&self, id: i32) -> bool {
        let is_it = |mapping: &Mapping| {
            mapping.name.starts_with(b"/SYSV00000000")
                && mapping.inode == u64::from(id.cast_unsigned())
        };
        self.0.iter().any(is_it)
    }

    pub(super) fn has_library(&self) -> bool {
        self.0.iter().any(|mapping| is_heapwright(&mapping.name))
    }

    /// Returns the readable parts of a range: an address and a length each.
    pub(super) fn readable(&self, at: u64, bytes: u64) -> impl Iterator<Item = (u64, u64)> {
        let end = at.saturating_add(bytes);
        self.0.iter().filter(|mapping| mapping.can_be_read).filter_map(move |mapping| {
            let (from, to) = (mapping.from.max(at), mapping.to.min(end));
            (from < to).then(|| (from, to - from))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_found_by_what_they_are() {
        let maps = Maps::parse(
            b"\
1000-3000 r-xp 00000000 08:01 7   /usr/lib/a b/libheapwright.so
4000-6000 ---p 00000000 00:00 0 
6000-8000 rw-p 00000000 00:00 0 
8000-a000 rw-s 00000000 00:01 5   /SYSV00000000 (deleted)
b000-c000 rw-s 00000000 00:01 9   /SYSV00001234 (deleted)
d000-e000 rw-p 00000000 00:00 5   /tmp/SYSV\xff00000000
rubbish
",
        );
        assert_eq!(maps.0.len(), 6);
        assert!(maps.has_library() && !Maps::default().has_library());
        assert!(maps.has_segment(5) && !maps.has_segment(9) && !maps.has_segment(0));
        let readable: Vec<_> = maps.readable(0x5000, 0x4000).collect();
        assert_eq!(readable, [(0x6000, 0x2000), (0x8000, 0x1000)]);
        assert_eq!(maps.readable(0, u64::MAX).count(), 5);
    }
}
