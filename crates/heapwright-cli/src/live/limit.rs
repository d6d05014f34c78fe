//! The memory limit that a process lives under: the least of its control groups'.
//!
//! Of version 2 `memory.max` and `memory.high` count, of version 1 `memory.limit_in_bytes`, of the group and of those that it is in.

use std::fs;
use std::path::{Path, PathBuf};

/// Limits of version 1 from here on are none: the kernel has a number for that which depends on the page size.
const NONE: u64 = 1 << 60;

/// The limit in bytes, if there is one.
pub(super) fn of(pid: u32) -> Option<u64> {
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    of_groups(&groups, Path::new("/sys/fs/cgroup"))
}

fn of_groups(groups: &str, root: &Path) -> Option<u64> {
    let mut least: Option<u64> = None;
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let (root, files): (PathBuf, &[&str]) = if controllers.is_empty() {
            (root.to_owned(), &["memory.max", "memory.high"])
        } else if controllers.split(',').any(|name| name == "memory") {
            (root.join("memory"), &["memory.limit_in_bytes"])
        } else {
            continue;
        };
        for folder in Path::new(path.trim_start_matches('/')).ancestors() {
            for file in files {
                let text = fs::read_to_string(root.join(folder).join(file)).unwrap_or_default();
                let limit = text.trim().parse().ok().filter(|&limit: &u64| limit < NONE);
                least = [least, limit].into_iter().flatten().min();
            }
        }
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Folder;

    #[test]
    fn the_least_limit_of_all_groups_counts() {
        let folder = Folder::new().expect("made");
        let put = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("in a folder")).expect("made");
            fs::write(path, text).expect("written");
        };
        put("a/b/memory.max", "max\n");
        put("a/b/memory.high", "3000\n");
        put("a/memory.max", "2000\n");
        put("memory/c/memory.limit_in_bytes", "1000\n");
        put("memory/memory.limit_in_bytes", "9223372036854771712\n");
        let of = |groups: &str| of_groups(groups, folder.path());
        assert_eq!(of("0::/a/b\n"), Some(2000));
        assert_eq!(of("0::/a/b\n4:cpu,memory:/c\n"), Some(1000));
        assert_eq!(of("4:cpu:/c\n3:memory:/\n"), None);
        assert_eq!(of("rubbish"), None);
    }
}
