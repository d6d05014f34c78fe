//! The memory limit of a process: the least limit of its control groups, as in the library.

use heapwright_record::control_group;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Returns the limit in bytes, if any.
pub(super) fn of(pid: u32) -> Option<u64> {
    let groups = fs::read(format!("/proc/{pid}/cgroup")).ok()?;
    let least = control_group::least(&groups, |group, file| {
        let path = group.path.strip_prefix(b"/").unwrap_or(group.path);
        let file = Path::new(group.root).join(OsStr::from_bytes(path)).join(file);
        fs::read_to_string(file).ok()?.trim().parse().ok()
    });
    least.map(|(_, limit)| limit)
}
