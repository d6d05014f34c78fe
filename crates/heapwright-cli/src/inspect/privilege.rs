//! Decides whether exec would be "secure": with more rights than the caller has.
//!
//! For such a program the loader drops LD_PRELOAD. The kernel decides by the file's set-id bits and
//! capabilities, the calling user, and the switches that turn the bits off.

use std::ffi::CString;
use std::fs;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) mode: u32,
    pub(super) owner: u32,
    pub(super) group: u32,
    pub(super) capabilities: bool,
    /// Whether the mount ignores set-id bits and capabilities.
    pub(super) nosuid: bool,
    pub(super) noexec: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Caller {
    pub(super) user: u32,
    pub(super) group: u32,
    /// Whether this process and its children can gain no rights.
    pub(super) no_new_privileges: bool,
}

/// The reason for a secure exec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gain {
    SetUid,
    SetGid,
    Capabilities,
}

impl Place {
    pub(super) fn of(path: &Path) -> Self {
        let Ok(meta) = fs::metadata(path) else { return Self::default() };
        let flags = mount_flags(path);
        Self {
            mode: meta.mode(),
            owner: meta.uid(),
            group: meta.gid(),
            capabilities: has_capabilities(path),
            nosuid: flags & libc::ST_NOSUID != 0,
            noexec: flags & libc::ST_NOEXEC != 0,
        }
    }

    /// Returns whether some callers gain rights through the program.
    pub(super) fn may_gain(&self) -> bool {
        let nobody = Caller { user: u32::MAX, group: u32::MAX, no_new_privileges: false };
        self.gain(nobody).is_some()
    }

    pub(super) fn gain(&self, caller: Caller) -> Option<Gain> {
        // Set-gid without the group's x bit means mandatory locking.
        let set_gid = self.mode & 0o2010 == 0o2010;
        if self.nosuid || caller.no_new_privileges {
            None
        } else if self.mode & 0o4000 != 0 && self.owner != caller.user {
            Some(Gain::SetUid)
        } else if set_gid && self.group != caller.group {
            Some(Gain::SetGid)
        } else if self.capabilities && caller.user != 0 {
            Some(Gain::Capabilities)
        } else {
            None
        }
    }
}

impl Caller {
    pub(super) fn current() -> Self {
        // SAFETY: takes no arguments and cannot fail.
        let user = unsafe { libc::getuid() };
        // SAFETY: takes no arguments and cannot fail.
        let group = unsafe { libc::getgid() };
        // SAFETY: no pointers are involved.
        let switch = unsafe { libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) };
        Self { user, group, no_new_privileges: switch == 1 }
    }
}

fn mount_flags(path: &Path) -> libc::c_ulong {
    let Ok(name) = CString::new(path.as_os_str().as_bytes()) else { return 0 };
    let mut mount = MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: the name ends in NUL and the result's place is writable.
    if unsafe { libc::statvfs(name.as_ptr(), mount.as_mut_ptr()) } != 0 {
        return 0;
    }
    // SAFETY: zeroed is a valid statvfs, and the call has filled it since.
    unsafe { mount.assume_init() }.f_flag
}

fn has_capabilities(path: &Path) -> bool {
    let Ok(name) = CString::new(path.as_os_str().as_bytes()) else { return false };
    let attribute = c"security.capability";
    // SAFETY: both names end in NUL; a size of 0 only queries the length.
    let length =
        unsafe { libc::getxattr(name.as_ptr(), attribute.as_ptr(), std::ptr::null_mut(), 0) };
    length > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const USER: Caller = Caller { user: 1000, group: 1000, no_new_privileges: false };
    const ROOT: Caller = Caller { user: 0, group: 0, no_new_privileges: false };

    #[test]
    fn set_id_programs_gain_unless_they_are_the_callers() {
        let sudo = Place { mode: 0o104_755, ..Place::default() };
        assert_eq!(sudo.gain(USER), Some(Gain::SetUid));
        assert_eq!(sudo.gain(ROOT), None);
        assert!(sudo.may_gain());
        let games = Place { mode: 0o102_755, group: 60, ..Place::default() };
        assert_eq!(games.gain(USER), Some(Gain::SetGid));
        assert_eq!(games.gain(ROOT), Some(Gain::SetGid));
        let locked = Place { mode: 0o102_745, group: 60, ..Place::default() };
        assert_eq!(locked.gain(USER), None);
    }

    #[test]
    fn capabilities_are_no_gain_for_root() {
        let ping = Place { mode: 0o100_755, capabilities: true, ..Place::default() };
        assert_eq!(ping.gain(USER), Some(Gain::Capabilities));
        assert_eq!(ping.gain(ROOT), None);
    }

    #[test]
    fn switches_turn_the_bits_off() {
        let sudo = Place { mode: 0o104_755, capabilities: true, ..Place::default() };
        assert_eq!(Place { nosuid: true, ..sudo }.gain(USER), None);
        assert_eq!(sudo.gain(Caller { no_new_privileges: true, ..USER }), None);
        let plain = Place { mode: 0o100_755, ..Place::default() };
        assert_eq!(plain.gain(USER), None);
        assert!(!plain.may_gain());
    }
}
