//! Files that a process leaves behind: `PREFIX.<pid>`, one for each process.
//!
//! ```text
//!   PREFIX.<pid>                       the user's alone, a new file, never through a link
//!   PREFIX.users/<uid>/process.<pid>   the record of a process that root gave to a user
//! ```
//!
//! The folder `<uid>` belongs to that user alone. A process of root makes the folder before the
//! process becomes that user. The record, the trace, the time line and the heap profile use such
//! names. Nothing here allocates, and all paths end with a zero.

use core::ffi::CStr;

use crate::digits::Digits;
use crate::os;

/// The longest path.
pub const PATH: usize = 512;

/// A path under construction, with zeros behind it.
#[derive(Clone, Copy)]
pub struct Path {
    bytes: [u8; PATH],
    length: usize,
}

impl Path {
    /// An empty path.
    pub const fn none() -> Self {
        Self { bytes: [0; PATH], length: 0 }
    }

    /// The path with a part appended, if there is room for it and a zero.
    #[must_use]
    pub fn with(mut self, part: &[u8]) -> Self {
        self.push(part);
        self
    }

    /// Appends a part, if there is room for it and a zero.
    pub fn push(&mut self, part: &[u8]) {
        if let Some(place) = self.bytes.get_mut(self.length..self.length + part.len())
            && self.length + part.len() < PATH
        {
            place.copy_from_slice(part);
            self.length += part.len();
        }
    }

    /// Reads the first bytes of a file whose path is this path followed by `name`. Makes only one
    /// copy of the path, because stacks may be small.
    #[inline(never)]
    pub fn read_in(&self, name: &[u8], text: &mut [u8]) -> usize {
        let mut path = Self { bytes: self.bytes, length: self.length };
        path.push(name);
        path.read(text)
    }

    /// The path with a number appended.
    #[must_use]
    pub fn with_number(self, number: u32) -> Self {
        self.with(Digits::decimal(u64::from(number)).as_bytes())
    }

    /// The path, and at least one zero.
    pub fn as_bytes(&self) -> &[u8; PATH] {
        &self.bytes
    }

    /// The length of the path in bytes.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Reads the file's first bytes.
    pub fn read(&self, text: &mut [u8]) -> usize {
        let Ok(path) = CStr::from_bytes_until_nul(&self.bytes) else { return 0 };
        os::read_beginning(path, text)
    }
}

const BEHIND: usize = b".users/4294967295/process.4294967295\0".len();

/// The prefix of some files' names.
pub struct Prefix(Path);

impl Prefix {
    /// No prefix.
    pub const fn none() -> Self {
        Self(Path::none())
    }

    /// Whether there is a prefix.
    #[cfg(any(test, feature = "debug"))]
    pub fn is_given(&self) -> bool {
        self.0.length != 0
    }

    /// Sets the prefix. A relative prefix begins in the present folder.
    pub fn set(&mut self, prefix: &[u8]) {
        let mut path = Path::none();
        if prefix.first() != Some(&b'/') {
            path.length = os::current_folder(&mut path.bytes[..PATH / 2]);
            path = path.with(b"/");
        }
        let length = prefix.len().min(PATH - BEHIND - path.length);
        self.0 = path.with(&prefix[..length]);
    }

    /// The path of a process's file.
    pub fn of(&self, process: u32) -> [u8; PATH] {
        self.0.with(b".").with_number(process).bytes
    }

    /// The path of a process's file in the folder `<uid>` of `user`.
    #[cfg(any(test, feature = "debug"))]
    pub fn of_user(&self, user: u32, process: u32) -> [u8; PATH] {
        self.folder_of(user).with(b"/process.").with_number(process).bytes
    }

    #[cfg(any(test, feature = "debug"))]
    fn folder_of(&self, user: u32) -> Path {
        self.0.with(b".users/").with_number(user)
    }

    /// Gives a process's file from the user `from` to the user `to`. If `from` is root, also makes
    /// the folder `<uid>` of `to`. Call this before the process changes its user to `to`.
    #[cfg(feature = "debug")]
    pub fn give(&self, process: u32, from: u32, to: u32) {
        os::give_file(&self.of(process), from, to);
        if from == 0 {
            let mut base = *self.0.as_bytes();
            let name = base.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
            base[name..].fill(0);
            let (folder, path) = (self.0.with(b".users"), self.folder_of(to));
            os::make_folder_of(to, path.as_bytes(), folder.as_bytes(), &base);
        }
    }
}

/// A path without the zeros behind it.
pub fn shown(path: &[u8]) -> &[u8] {
    path.split(|&byte| byte == 0).next().unwrap_or_default()
}

/// Copies the process's command line, each word ended by a zero, as far as it fits. Returns the
/// number of bytes.
pub fn command_line(out: &mut [u8]) -> usize {
    os::read_beginning(c"/proc/self/cmdline", out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_process_has_its_own_file() {
        let mut prefix = Prefix::none();
        assert!(!prefix.is_given());
        prefix.set(b"/tmp/x");
        assert!(prefix.is_given());
        assert_eq!(shown(&prefix.of(1)), b"/tmp/x.1");
        assert_eq!(shown(&prefix.of(u32::MAX)), b"/tmp/x.4294967295");
        assert_eq!(shown(&prefix.of_user(7, 1)), b"/tmp/x.users/7/process.1");
        prefix.set(&[b'/'; 600]);
        assert_eq!(shown(&prefix.of_user(u32::MAX, u32::MAX)).len(), PATH - 1);
    }

    #[test]
    fn paths_are_cut_before_they_are_wrong() {
        let long = [b'x'; PATH];
        assert_eq!(Path::none().with(b"/a").with(&long).length(), 2);
        assert_eq!(shown(Path::none().with(b"/a").with(b"/b").with_number(7).as_bytes()), b"/a/b7");
        assert_eq!(Path::none().with(b"/no/such/file").read(&mut [0; 8]), 0);
    }
}
