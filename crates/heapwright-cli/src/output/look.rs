//! What text may contain: colour, and block characters for bars.
//!
//! Only a terminal gets colour, unless NO_COLOR (no-color.org) or TERM=dumb is set. Terminals and
//! files get block characters in a locale with UTF-8, except a dumb terminal.

use std::ffi::OsStr;
use std::io::IsTerminal;

/// Whether text may contain colour, and block characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) colour: bool,
    pub(crate) unicode: bool,
}

impl Look {
    /// The look without colour and block characters, for tests.
    #[cfg(test)]
    pub(crate) const PLAIN: Self = Self { colour: false, unicode: false };

    pub(crate) fn of(stream: &impl IsTerminal) -> Self {
        let variable = |name: &str| std::env::var_os(name);
        Self::from(stream.is_terminal(), &|name| variable(name).filter(|value| !value.is_empty()))
    }

    fn from<S: AsRef<OsStr>>(terminal: bool, variable: &dyn Fn(&str) -> Option<S>) -> Self {
        let dumb = variable("TERM").is_some_and(|term| term.as_ref() == "dumb");
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| variable(name));
        let charset = locale.map(|name| name.as_ref().to_string_lossy().to_ascii_lowercase());
        let utf8 = charset.is_some_and(|name| name.contains("utf-8") || name.contains("utf8"));
        Self {
            colour: terminal && !dumb && variable("NO_COLOR").is_none(),
            unicode: utf8 && !(terminal && dumb),
        }
    }

    /// Returns a text as a heading.
    pub(crate) fn strong(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub(crate) fn drawn(self, text: &str) -> String {
        self.paint("36", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colour && !text.is_empty() {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(terminal: bool, variables: &[(&str, &str)]) -> (bool, bool) {
        let find = |name: &str| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.to_string())
        };
        let look = Look::from(terminal, &find);
        (look.colour, look.unicode)
    }

    #[test]
    fn terminal_and_locale_decide() {
        assert_eq!(look(true, &[("LANG", "C.UTF-8"), ("TERM", "xterm")]), (true, true));
        assert_eq!(look(false, &[("LANG", "de_DE.utf8")]), (false, true));
        assert_eq!(look(true, &[("LANG", "C.UTF-8"), ("NO_COLOR", "1")]), (false, true));
        assert_eq!(look(true, &[("LANG", "C.UTF-8"), ("TERM", "dumb")]), (false, false));
        assert_eq!(look(true, &[("LANG", "C.UTF-8"), ("LC_ALL", "C")]), (true, false));
        assert_eq!(look(true, &[]), (true, false));
    }

    #[test]
    fn colour_is_escapes_around_text() {
        let coloured = Look { colour: true, unicode: false };
        assert_eq!(coloured.strong("x"), "\x1b[1mx\x1b[0m");
        assert_eq!(coloured.drawn(""), "");
        assert_eq!(Look::PLAIN.strong("x"), "x");
    }
}
