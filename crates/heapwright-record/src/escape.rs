//! Escapes text from outside for one line of output.
//!
//! Other programs choose the names of files, threads and functions. Such a name must not end the
//! line, move the cursor, or change the direction of the text around it.

/// Passes `text` to `put` in pieces, with invisible characters spelt out as Rust spells them.
///
/// Control characters, marks of direction, separators of lines and characters without a width
/// become `\n` or `\u{202e}`. Bytes that are not UTF-8 become U+FFFD.
///
/// ```
/// let mut line = String::new();
/// heapwright_record::escaped(b"a\n\x1b[2J\xe2\x80\xaeb\xff", |piece| line.push_str(piece));
/// assert_eq!(line, "a\\n\\u{1b}[2J\\u{202e}b\u{fffd}");
/// ```
pub fn escaped(text: &[u8], mut put: impl FnMut(&str)) {
    for chunk in text.utf8_chunks() {
        let valid = chunk.valid();
        let mut from = 0;
        for (at, letter) in valid.char_indices().filter(|&(_, letter)| is_hidden(letter)) {
            put(valid.get(from..at).unwrap_or_default());
            for plain in letter.escape_default() {
                put(plain.encode_utf8(&mut [0; 4]));
            }
            from = at + letter.len_utf8();
        }
        put(valid.get(from..).unwrap_or_default());
        if !chunk.invalid().is_empty() {
            put("\u{fffd}");
        }
    }
}

/// Returns whether a screen does not show a character, or acts on it.
///
/// ```
/// assert!(heapwright_record::is_hidden('\u{202e}') && !heapwright_record::is_hidden('é'));
/// ```
#[must_use]
pub const fn is_hidden(letter: char) -> bool {
    matches!(letter,
        // controls
        '\0'..='\x1f' | '\x7f'..='\u{9f}'
        // soft hyphen, marks of direction, separators of lines
        | '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        // invisible operators, isolates, the byte order mark, annotations, tags
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::String;

    fn line(text: &[u8]) -> String {
        let mut line = String::new();
        escaped(text, |piece| line.push_str(piece));
        line
    }

    #[test]
    fn letters_of_any_script_stay() {
        for text in ["", "main", "naïve café", "ファイル.c", "\\ \"quoted\" <b>&amp;"] {
            assert_eq!(line(text.as_bytes()), text);
        }
    }

    #[test]
    fn nothing_ends_a_line_or_turns_it_around() {
        for (text, shown) in [
            ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
            ("\u{1b}]0;title\u{7}", "\\u{1b}]0;title\\u{7}"),
            ("\u{9b}2J\u{7f}", "\\u{9b}2J\\u{7f}"),
            ("gnp.\u{202e}exe", "gnp.\\u{202e}exe"),
            ("\u{2066}a\u{2069}\u{2028}b\u{200b}", "\\u{2066}a\\u{2069}\\u{2028}b\\u{200b}"),
        ] {
            assert_eq!(line(text.as_bytes()), shown);
        }
        assert_eq!(line(b"\xff\xfea\xe2\x80"), "\u{fffd}\u{fffd}a\u{fffd}");
    }
}
