//! Files as URIs: relative to the folder for files in it, else absolute if the place is known.
//!
//! Every `.` and `..` is resolved as text: compilers write names such as `/src/lib/../a.c`, and
//! readers of SARIF refuse them.

use serde::Serialize;
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const BASE: &str = "%SRCROOT%";

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Artifact {
    pub(super) uri: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) uri_base_id: Option<&'static str>,
}

pub(super) struct Uris<'a> {
    folder: Vec<&'a [u8]>,
}

impl<'a> Uris<'a> {
    pub(super) fn new(folder: &'a Path) -> Self {
        Self { folder: parts(folder.as_os_str().as_bytes()) }
    }

    pub(super) fn is_inside(&self, source: &str) -> bool {
        self.relative(source.as_bytes()).is_some()
    }

    pub(super) fn artifact(&self, path: &[u8]) -> Artifact {
        match self.relative(path) {
            Some(parts) => Artifact { uri: joined(&parts), uri_base_id: Some(BASE) },
            None if path.starts_with(b"/") => {
                Artifact { uri: format!("file:///{}", joined(&parts(path))), uri_base_id: None }
            }
            // The name is relative to an unknown folder, or names no file, such as [vdso].
            None => Artifact { uri: joined(&parts(path)), uri_base_id: None },
        }
    }

    pub(super) fn base(&self) -> BTreeMap<&'static str, Artifact> {
        let slash = if self.folder.is_empty() { "" } else { "/" };
        let uri = format!("file:///{}{slash}", joined(&self.folder));
        BTreeMap::from([(BASE, Artifact { uri, uri_base_id: None })])
    }

    fn relative<'b>(&self, path: &'b [u8]) -> Option<Vec<&'b [u8]>> {
        let parts = path.starts_with(b"/").then(|| parts(path))?;
        let length = self.folder.len();
        let inside = length != 0 && length < parts.len() && parts[..length] == self.folder;
        inside.then(|| parts[length..].to_vec())
    }
}

fn parts(path: &[u8]) -> Vec<&[u8]> {
    let mut parts = Vec::new();
    for part in path.split(|&byte| byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts
}

/// Joins the parts of a path, with special characters as `%20`.
fn joined(parts: &[&[u8]]) -> String {
    let mut out = String::new();
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            out.push('/');
        }
        for &byte in *part {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                out.push(byte.into());
            } else {
                out += &format!("%{byte:02X}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_in_the_folder_are_relative_to_it() {
        let uris = Uris::new(Path::new("/home/ada/sh op"));
        let printed = |path: &str| {
            let artifact = uris.artifact(path.as_bytes());
            (artifact.uri, artifact.uri_base_id.is_some())
        };
        for (path, uri, inside) in [
            ("/home/ada/sh op/src/a.c", "src/a.c", true),
            ("/home/ada/sh op/lib/../src/./a:b.c", "src/a%3Ab.c", true),
            ("/home/ada/sh op/../x.c", "file:///home/ada/x.c", false),
            ("/home/ada/sh opera/x.c", "file:///home/ada/sh%20opera/x.c", false),
            ("/usr/include/c++/é#?.h", "file:///usr/include/c%2B%2B/%C3%A9%23%3F.h", false),
            ("a.c", "a.c", false),
            ("[vdso]", "%5Bvdso%5D", false),
        ] {
            assert_eq!(printed(path), (uri.to_owned(), inside), "{path}");
        }
        assert_eq!(uris.base()[BASE].uri, "file:///home/ada/sh%20op/");
        // The root folder contains everything, so it counts as no folder.
        assert!(!Uris::new(Path::new("/")).is_inside("/usr/x.c"));
        assert_eq!(Uris::new(Path::new("/")).base()[BASE].uri, "file:///");
    }
}
