//! One allocator in the race, and its line of output.

use std::path::PathBuf;

pub(crate) struct Peer {
    pub(crate) name: &'static str,
    /// Variables that the program's environment needs beside the preload.
    pub(crate) environment: Vec<(&'static str, &'static str)>,
    pub(crate) library: PathBuf,
    /// Its project's version, if known.
    pub(crate) version: String,
    /// Its source: a crate, a Debian package.
    pub(crate) origin: String,
}

impl Peer {
    pub(crate) fn variant(
        mut self,
        name: &'static str,
        variable: &'static str,
        value: &'static str,
    ) -> Self {
        self.name = name;
        self.environment.push((variable, value));
        self
    }

    pub(crate) fn line(&self) -> String {
        let mut line = format!("{}=", self.name);
        for (variable, value) in &self.environment {
            line.push_str(&format!("{variable}={value} "));
        }
        line.push_str(&self.library.display().to_string());
        line
    }
}

pub(crate) fn versions(peers: &[Peer]) -> String {
    let mut text = String::from("| name | version | from |\n|---|---|---|\n");
    for peer in peers {
        let mut origin = peer.origin.clone();
        for (variable, value) in &peer.environment {
            origin.push_str(&format!("; `{variable}={value}`"));
        }
        text.push_str(&format!("| {} | {} | {origin} |\n", peer.name, peer.version));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain() -> Peer {
        Peer {
            name: "mimalloc",
            environment: Vec::new(),
            library: "/work/libmimalloc.so".into(),
            version: "3.3.2".to_owned(),
            origin: "libmimalloc-sys 0.1.49".to_owned(),
        }
    }

    #[test]
    fn a_line_is_what_with_takes() {
        assert_eq!(plain().line(), "mimalloc=/work/libmimalloc.so");
        let variant = plain().variant("mimalloc-no-thp", "MIMALLOC_ALLOW_THP", "0");
        assert_eq!(variant.line(), "mimalloc-no-thp=MIMALLOC_ALLOW_THP=0 /work/libmimalloc.so");
    }

    #[test]
    fn the_table_names_the_variables() {
        let text = versions(&[plain(), plain().variant("other", "A", "1")]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[2], "| mimalloc | 3.3.2 | libmimalloc-sys 0.1.49 |");
        assert_eq!(lines[3], "| other | 3.3.2 | libmimalloc-sys 0.1.49; `A=1` |");
    }
}
