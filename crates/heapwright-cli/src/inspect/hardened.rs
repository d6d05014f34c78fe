//! The facilities of this machine for `mode=hardened`.
//!
//! ```text
//! kernel     guards that split no mapping (Linux 6.13)   else 12,000 at most, by mprotect
//!            mseal (Linux 6.10)                          else settings are read-only, and no more
//!            getrandom                                   else the kernel's random bytes at start
//! limits     RLIMIT_AS, or less room than 1 TiB          window and table at a known distance
//!            vm.max_map_count                            guards by mprotect take 2 mappings each
//! ```
//!
//! A kernel's version says little if a sandbox filters system calls. So this module tries each
//! facility on a page of this process, by the library's own system call.

use super::Finding;
use std::fs;
use std::io;
use std::ptr;

/// The most guards if each splits a mapping.
const HEAVY_GUARDS: u64 = 12_000;
/// The kernel's default of `vm.max_map_count`.
const MAPPINGS: u64 = 65_530;

const MADV_GUARD_INSTALL: i32 = 102;
const SYS_MSEAL: libc::c_long = 462;

#[derive(Clone, Copy)]
struct Machine {
    light_guards: bool,
    mseal: bool,
    getrandom: bool,
    /// `RLIMIT_AS`, which programs started from here inherit.
    address_space: Option<u64>,
    has_room: bool,
    mappings: Option<u64>,
}

pub(crate) fn remark() -> Finding {
    Finding::remark("hardened", words(&machine()))
}

fn words(machine: &Machine) -> String {
    let guards = if machine.light_guards {
        "guards without mappings of their own (MADV_GUARD_INSTALL)".to_owned()
    } else {
        format!("at most {HEAVY_GUARDS} guards, by mprotect (before Linux 6.13)")
    };
    let settings = if machine.mseal {
        "settings that are read-only and sealed (mseal)"
    } else {
        "settings that are read-only, but not sealed (before Linux 6.10)"
    };
    let random = if machine.getrandom {
        "random choices by getrandom"
    } else {
        "random choices by what the process is given when it starts (getrandom is refused)"
    };
    let places = match machine.address_space {
        None if machine.has_room => "each of its tables at a random place".to_owned(),
        None => "its table at a known distance from blocks, because 1 TiB of address space cannot be reserved".to_owned(),
        Some(bytes) => format!(
            "its table at a known distance from blocks, because address space is limited to {} MiB (ulimit -v)",
            bytes >> 20
        ),
    };
    let mut text = format!(
        "mode=hardened (run --hardened) would have here: {guards}; {settings}; {random}; {places}"
    );
    if let Some(mappings) =
        machine.mappings.filter(|&mappings| !machine.light_guards && mappings < MAPPINGS)
    {
        text.push_str(&format!(
            "; vm.max_map_count is {mappings}: with many guards, mappings may run out (the usual {MAPPINGS} are enough)"
        ));
    }
    text
}

fn machine() -> Machine {
    let mappings = fs::read_to_string("/proc/sys/vm/max_map_count").ok();
    Machine {
        light_guards: has_light_guards().unwrap_or(false),
        mseal: has_mseal(),
        getrandom: has_getrandom(),
        address_space: address_space(),
        has_room: has_room(),
        mappings: mappings.and_then(|text| text.trim().parse().ok()),
    }
}

/// Returns `None` without a page to try.
fn has_light_guards() -> Option<bool> {
    const SIZE: usize = 64 << 10;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping replaces nothing.
    let page = unsafe {
        libc::mmap(ptr::null_mut(), SIZE, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
    };
    if page == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: the mapping made above, which nothing uses.
    let done = unsafe { libc::madvise(page, SIZE, MADV_GUARD_INSTALL) } == 0;
    // SAFETY: the mapping made above, which nothing uses.
    unsafe { libc::munmap(page, SIZE) };
    Some(done)
}

/// Sealing zero bytes succeeds if `mseal` exists.
fn has_mseal() -> bool {
    // SAFETY: the call seals no bytes.
    unsafe { libc::syscall(SYS_MSEAL, 0usize, 0usize, 0usize) == 0 }
}

fn has_getrandom() -> bool {
    let mut bytes = [0u8; 8];
    // SAFETY: the buffer has room for this many bytes.
    let got = unsafe {
        libc::syscall(libc::SYS_getrandom, bytes.as_mut_ptr(), bytes.len(), libc::GRND_NONBLOCK)
    };
    // Right after boot the pool is not ready; the library waits then.
    got == 8 || (got == -1 && io::Error::last_os_error().raw_os_error() == Some(libc::EAGAIN))
}

/// Tries the window's reservation, which is inaccessible: overcommit does not matter.
fn has_room() -> bool {
    const WINDOW: usize = 1 << 40;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping replaces nothing.
    let at = unsafe { libc::mmap(ptr::null_mut(), WINDOW, libc::PROT_NONE, flags, -1, 0) };
    if at == libc::MAP_FAILED {
        return false;
    }
    // SAFETY: the mapping made above, which nothing uses.
    unsafe { libc::munmap(at, WINDOW) };
    true
}

fn address_space() -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid place for the answer.
    let got = unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) };
    (got == 0 && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Machine = Machine {
        light_guards: true,
        mseal: true,
        getrandom: true,
        address_space: None,
        has_room: true,
        mappings: Some(MAPPINGS),
    };

    #[test]
    fn a_new_kernel_has_all_of_it() {
        assert_eq!(
            words(&ALL),
            "mode=hardened (run --hardened) would have here: guards without mappings of their own \
             (MADV_GUARD_INSTALL); settings that are read-only and sealed (mseal); random choices by getrandom; each \
             of its tables at a random place"
        );
        // A low limit of mappings does not matter if guards take none.
        assert_eq!(words(&Machine { mappings: Some(1000), ..ALL }), words(&ALL));
    }

    #[test]
    fn what_is_missing_is_said() {
        let old = Machine { light_guards: false, mseal: false, ..ALL };
        let text = words(&old);
        assert!(
            text.contains("at most 12000 guards, by mprotect") && text.contains("not sealed"),
            "{text}"
        );
        assert!(!text.contains("max_map_count"), "{text}");
        let few = words(&Machine { mappings: Some(20_000), ..old });
        assert!(
            few.ends_with("(the usual 65530 are enough)") && few.contains("is 20000:"),
            "{few}"
        );
        let sandbox =
            words(&Machine { getrandom: false, address_space: Some(300_000 << 10), ..ALL });
        assert!(sandbox.contains("getrandom is refused"), "{sandbox}");
        assert!(sandbox.contains("limited to 292 MiB (ulimit -v)"), "{sandbox}");
        let narrow = words(&Machine { has_room: false, ..ALL });
        assert!(narrow.ends_with("because 1 TiB of address space cannot be reserved"), "{narrow}");
    }
}
