//! The kernel's facts about a process, from /proc.

use super::limit;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::OnceLock;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) user: u32,
    pub(crate) command: Vec<String>,
    /// The options with which the process was started.
    pub(crate) options: String,
    pub(crate) resident: u64,
    /// Resident bytes of files and of shared memory.
    pub(crate) files: u64,
    pub(crate) peak: u64,
    /// Page faults so far, including those that read the disk.
    pub(crate) faults: u64,
    pub(crate) limit: Option<u64>,
}

impl Process {
    /// Looks at a process. Returns `None` if it does not exist.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        let folder = PathBuf::from(format!("/proc/{pid}"));
        let user = fs::metadata(&folder).ok()?.uid();
        // A name may be any bytes.
        let status = fs::read(folder.join("status")).ok()?;
        let status = String::from_utf8_lossy(&status);
        let kib = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().strip_suffix(" kB")?.parse::<u64>().ok()
        };
        // A process that has ended and was not yet reaped has no memory.
        let resident = kib("VmRSS:")? * 1024;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let command = fs::read(folder.join("cmdline")).unwrap_or_default();
        let words = command.split(|&byte| byte == 0).map(text);
        // `setproctitle` leaves blanks if the old command line was longer.
        let words = words.map(|word| word.trim_end().to_owned());
        let mut command: Vec<String> = words.filter(|word| !word.is_empty()).collect();
        if command.is_empty() {
            command.extend(
                status.lines().next()?.strip_prefix("Name:").map(|name| name.trim().to_owned()),
            );
        }
        let options = variable(pid, "HEAPWRIGHT").unwrap_or_default();
        let options = options.to_string_lossy().into_owned();
        let stat = fs::read(folder.join("stat")).unwrap_or_default();
        let faults = faults(&String::from_utf8_lossy(&stat));
        let files = (kib("RssFile:").unwrap_or(0) + kib("RssShmem:").unwrap_or(0)) * 1024;
        let peak = kib("VmHWM:").unwrap_or(0) * 1024;
        let limit = limit::of(pid);
        Some(Self { pid, user, command, options, resident, files, peak, faults, limit })
    }

    pub(crate) fn name(&self) -> &str {
        let first = self.command.first().map_or("?", String::as_str);
        first.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(first)
    }

    /// Returns the value of an option; the last one given counts.
    pub(crate) fn option(&self, name: &str) -> Option<&str> {
        let options = self.options.split([',', ';']).filter_map(|option| option.split_once('='));
        let mut named = options.filter(|(key, _)| key.trim() == name);
        named.next_back().map(|(_, value)| value.trim())
    }
}

/// Returns a variable of a process's environment at its start.
pub(super) fn variable(pid: u32, name: &str) -> Option<OsString> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let entries = environment.split(|&byte| byte == 0);
    let mut values =
        entries.filter_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="));
    values.next().map(|value| OsString::from_vec(value.to_vec()))
}

/// Returns the effective user of a process; `None` if there is no such process.
pub(super) fn user_of(pid: u32) -> Option<u32> {
    let status = fs::read(format!("/proc/{pid}/status")).ok()?;
    let status = String::from_utf8_lossy(&status);
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    users.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Returns a process's bytes in swap space.
pub(super) fn swapped(pid: u32) -> Option<u64> {
    let status = fs::read(format!("/proc/{pid}/status")).ok()?;
    let status = String::from_utf8_lossy(&status);
    let size = status.lines().find_map(|line| line.strip_prefix("VmSwap:"))?;
    Some(size.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
}

/// Returns the number of a process's system call filters; a sandboxed one has more than ours.
pub(super) fn filters(pid: &str) -> u32 {
    let status = fs::read(format!("/proc/{pid}/status")).unwrap_or_default();
    let status = String::from_utf8_lossy(&status);
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|text| text.trim().parse().ok())
    };
    // Kernels before 5.9 report only whether there are filters.
    field("Seccomp_filters:").or_else(|| field("Seccomp:")).unwrap_or(0)
}

/// Returns the page faults in /proc/PID/stat, minor and major.
fn faults(stat: &str) -> u64 {
    // A name may contain spaces and brackets.
    let fields: Vec<&str> =
        stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_ascii_whitespace().collect();
    [7, 9].iter().filter_map(|&at| fields.get(at)?.parse::<u64>().ok()).sum()
}

pub(crate) fn page_size() -> usize {
    static SIZE: OnceLock<usize> = OnceLock::new();
    *SIZE.get_or_init(|| {
        // SAFETY: no preconditions.
        let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        usize::try_from(size).unwrap_or(4096)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_described() {
        let me = Process::of(std::process::id()).expect("there");
        assert!(me.resident > 100_000 && me.peak >= me.resident && me.faults > 10);
        assert!(!me.command.is_empty() && !me.name().contains('/'));
        assert_eq!(Process::of(u32::MAX / 2), None);
        // SAFETY: no preconditions.
        assert_eq!(user_of(std::process::id()), Some(unsafe { libc::geteuid() }));
        assert_eq!(user_of(u32::MAX / 2), None);
    }

    /// The command line is as `setproctitle` leaves it.
    #[test]
    fn blanks_behind_words_are_left_out() {
        use std::os::unix::process::CommandExt;
        let title = format!("server: worker{}", " ".repeat(40));
        let mut child =
            std::process::Command::new("sleep").arg0(title).arg("9").spawn().expect("runs");
        // A process that is about to begin its program shows no words yet.
        let look = |_| Process::of(child.id()).filter(|process| process.command.len() > 1);
        let process = (0..1_000_000).find_map(look).expect("there");
        let _ = child.kill();
        let _ = child.wait();
        assert_eq!(process.command, ["server: worker", "9"]);
    }

    #[test]
    fn faults_are_found_behind_any_name() {
        assert_eq!(faults("1 (a) b) S 1 2 3 4 5 6 700 8 9 10"), 709);
        assert_eq!(faults("rubbish"), 0);
    }

    #[test]
    fn the_last_option_counts() {
        let options = "cache=shared:4, purge=1;cache = percpu".to_owned();
        let process = Process { options, ..Process::default() };
        assert_eq!(process.option("cache"), Some("percpu"));
        assert_eq!(process.option("mode"), None);
    }
}
