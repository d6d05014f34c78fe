//! Files that a process leaves behind: `PREFIX.<pid>`, one for each process.
//!
//! What the debug heap's record and the trace share: their names, and what they say of
//! the program at their beginning. No memory is asked for; paths end with a zero.

use crate::digits::Digits;
use crate::os;

/// The longest path.
pub const PATH: usize = 512;

/// What the names of some files begin with.
pub struct Prefix([u8; PATH]);

impl Prefix {
    /// None yet.
    pub const fn none() -> Self {
        Self([0; PATH])
    }

    /// Whether there is one.
    #[cfg(any(test, feature = "debug"))]
    pub fn is_given(&self) -> bool {
        self.0[0] != 0
    }

    /// Takes one, from where the program is now: it may go elsewhere.
    pub fn set(&mut self, prefix: &[u8]) {
        self.0 = [0; PATH];
        let mut at = 0;
        if prefix.first() != Some(&b'/') {
            at = os::current_folder(&mut self.0[..PATH / 2]);
            self.0[at] = b'/';
            at += 1;
        }
        let length = prefix.len().min(PATH - 13 - at);
        self.0[at..at + length].copy_from_slice(&prefix[..length]);
    }

    /// The path of a process's file.
    pub fn of(&self, process: u32) -> [u8; PATH] {
        let mut path = self.0;
        let end = path.iter().position(|&b| b == 0).unwrap_or(PATH - 12);
        let digits = Digits::decimal(u64::from(process));
        let digits = digits.as_bytes();
        path[end] = b'.';
        path[end + 1..end + 1 + digits.len()].copy_from_slice(digits);
        path
    }
}

/// A path without the zero at its end.
pub fn shown(path: &[u8]) -> &[u8] {
    path.split(|&byte| byte == 0).next().unwrap_or_default()
}

/// Copies the process's words, each ended by a zero, into `out`, as far as they fit.
/// Returns how many bytes that are.
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
        prefix.set(&[b'/'; 600]);
        assert_eq!(shown(&prefix.of(u32::MAX)).len(), PATH - 13 + 11);
    }
}
