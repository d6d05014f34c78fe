//! Finds the control group that limits a process's memory most. The kernel's files have the limits;
//! the least limit counts.
//!
//! ```text
//!   /proc/PID/cgroup   0::/a/b           version 2, /sys/fs/cgroup: memory.max, memory.high
//!                      4:cpu,memory:/c   version 1, /sys/fs/cgroup/memory: memory.limit_in_bytes
//!   for each line      /a/b, /a, /       the group, and the groups that contain it
//! ```
//!
//! This code reads no file: the library and the command pass the contents to [`least`].

/// The least limit that counts, in bytes. (With a `memory.high` of 0 the kernel only reclaims.)
pub const LEAST_LIMIT: u64 = 1 << 20;
/// Larger limits mean no limit. In version 1, "none" is a number that depends on the page size.
const NO_LIMIT: u64 = 1 << 60;

/// A group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Group<'a> {
    /// The folder that contains all groups of its version.
    pub root: &'static str,
    /// The group's path in that folder, without a slash at its end.
    pub path: &'a [u8],
    /// Whether the group is of version 2.
    pub is_second_version: bool,
}

/// Returns the group with the least limit, and the limit. `groups` is the text of a process's
/// `cgroup`. `read` returns the number in a group's file.
pub fn least<'a>(
    groups: &'a [u8],
    mut read: impl FnMut(&Group<'a>, &'static str) -> Option<u64>,
) -> Option<(Group<'a>, u64)> {
    let mut least: Option<(Group<'a>, u64)> = None;
    for line in groups.split(|&byte| byte == b'\n') {
        let mut parts = line.splitn(3, |&byte| byte == b':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let is_second_version = controllers.is_empty();
        let is_memory = controllers.split(|&byte| byte == b',').any(|name| name == b"memory");
        let (root, files): (_, &[_]) = match (is_second_version, is_memory) {
            (true, _) => ("/sys/fs/cgroup", &["memory.max", "memory.high"]),
            (false, true) => ("/sys/fs/cgroup/memory", &["memory.limit_in_bytes"]),
            (false, false) => continue,
        };
        let mut length = path.len();
        loop {
            let path = path[..length].strip_suffix(b"/").unwrap_or(&path[..length]);
            let group = Group { root, path, is_second_version };
            for file in files {
                if let Some(limit) = read(&group, file)
                    && (LEAST_LIMIT..NO_LIMIT).contains(&limit)
                    && least.is_none_or(|(_, least)| limit < least)
                {
                    least = Some((group, limit));
                }
            }
            match path.iter().rposition(|&byte| byte == b'/') {
                Some(end) => length = end,
                None => break,
            }
        }
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(groups: &str) -> Option<(&[u8], u64)> {
        let read = |group: &Group<'_>, file: &str| match (group.root, group.path, file) {
            ("/sys/fs/cgroup", b"/a/b", "memory.high") => Some(3 << 20),
            ("/sys/fs/cgroup", b"/a", "memory.max") => Some(2 << 20),
            ("/sys/fs/cgroup", b"", "memory.high") => Some(0),
            ("/sys/fs/cgroup/memory", b"/c", "memory.limit_in_bytes") => Some(1 << 20),
            ("/sys/fs/cgroup/memory", b"", "memory.limit_in_bytes") => Some(0x7fff_ffff_ffff_f000),
            _ => None,
        };
        least(groups.as_bytes(), read).map(|(group, limit)| (group.path, limit))
    }

    #[test]
    fn the_least_limit_of_all_groups_counts() {
        assert_eq!(of("0::/a/b\n"), Some((&b"/a"[..], 2 << 20)));
        assert_eq!(of("0::/a/b\n4:cpu,memory:/c\n"), Some((&b"/c"[..], 1 << 20)));
        for none in ["4:cpu:/c\n3:memory:/\n", "0::/", "0::", "x", "", ":::"] {
            assert_eq!(of(none), None);
        }
    }
}
