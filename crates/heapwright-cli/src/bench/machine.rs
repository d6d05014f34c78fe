//! The machine of a race, and its sources of noise.

use super::results::Machine;
use crate::live::page_size;
use std::ffi::CStr;
use std::fs;
use std::mem::MaybeUninit;

/// A load above this share of the cores is noise.
const BUSY: f64 = 0.5;

pub(crate) fn describe() -> Machine {
    Machine {
        cpu: cpu(),
        cores: cores(),
        memory_bytes: memory(&read("/proc/meminfo"), "MemTotal:"),
        kernel: kernel(),
        libc: libc_version(),
        page_bytes: page_size() as u64,
        thp: chosen(&read("/sys/kernel/mm/transparent_hugepage/enabled")),
    }
}

/// Returns the known sources of noise on this machine, one sentence each.
pub(crate) fn noise() -> Vec<String> {
    let mut found = Vec::new();
    let load = read("/proc/loadavg");
    let load = load.split_whitespace().next().and_then(|number| number.parse::<f64>().ok());
    if let Some(load) = load.filter(|load| *load > BUSY * cores() as f64) {
        found.push(format!(
            "the machine was busy at the start: load {load:.1} on {} cores",
            cores()
        ));
    }
    let cpu = "/sys/devices/system/cpu";
    let governor = read(&format!("{cpu}/cpu0/cpufreq/scaling_governor"));
    let governor = governor.trim();
    if !matches!(governor, "" | "performance") {
        found.push(format!("the processor's speed follows the governor '{governor}'"));
    }
    let turbo = read(&format!("{cpu}/intel_pstate/no_turbo")).trim() == "0"
        || read(&format!("{cpu}/cpufreq/boost")).trim() == "1";
    if turbo {
        found.push("the processor's speed depends on its temperature (turbo is on)".to_owned());
    }
    found
}

/// Returns an empty text if there is no such file.
fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn cpu() -> String {
    let named = |key: &str| {
        let text = read("/proc/cpuinfo");
        let line = text.lines().find(|line| line.starts_with(key))?.to_owned();
        Some(line.split_once(':')?.1.trim().to_owned()).filter(|name| !name.is_empty())
    };
    let part = || named("CPU part").map(|part| format!("{} part {part}", std::env::consts::ARCH));
    named("model name").or_else(part).unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

/// Returns the bytes of free memory, without the page cache; 0 if unknown.
pub(super) fn unused() -> u64 {
    memory(&read("/proc/meminfo"), "MemFree:")
}

fn memory(meminfo: &str, key: &str) -> u64 {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(key));
    let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or_default() * 1024
}

/// Returns the bracketed word of `always [madvise] never`.
fn chosen(text: &str) -> String {
    let inside = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or("unknown", |(word, _)| word).to_owned()
}

fn kernel() -> String {
    let mut name = MaybeUninit::<libc::utsname>::zeroed();
    // SAFETY: `name` can be written.
    let result = unsafe { libc::uname(name.as_mut_ptr()) };
    if result != 0 {
        return "unknown".to_owned();
    }
    // SAFETY: all zeros is a valid struct, and so is the call's result.
    let name = unsafe { name.assume_init() };
    // SAFETY: the kernel's text ends in NUL within the field.
    let release = unsafe { CStr::from_ptr(name.release.as_ptr()) };
    release.to_string_lossy().into_owned()
}

#[cfg(target_env = "gnu")]
fn libc_version() -> String {
    // SAFETY: the function takes no arguments.
    let version = unsafe { libc::gnu_get_libc_version() };
    // SAFETY: the text is a constant that ends in NUL.
    let version = unsafe { CStr::from_ptr(version) };
    format!("glibc {}", version.to_string_lossy())
}

#[cfg(not(target_env = "gnu"))]
fn libc_version() -> String {
    "not glibc".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_described() {
        let machine = describe();
        assert!(machine.cores > 0 && machine.memory_bytes > 0, "{machine:?}");
        assert!(machine.page_bytes.is_power_of_two(), "{machine:?}");
        assert!(!machine.cpu.is_empty() && !machine.kernel.is_empty(), "{machine:?}");
    }

    #[test]
    fn the_kernels_files_are_read() {
        assert_eq!(memory("MemFree: 1 kB\nMemTotal:        2048 kB\n", "MemTotal:"), 2 << 20);
        assert_eq!(memory("", "MemTotal:"), 0);
        assert_eq!(chosen("always [madvise] never\n"), "madvise");
        assert_eq!(chosen(""), "unknown");
    }
}
