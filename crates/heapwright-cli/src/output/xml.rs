//! Escapes text for elements and attributes of XML. XML 1.0 cannot contain most control characters,
//! even escaped; they become U+FFFD.

use std::fmt::Write;

use heapwright_record::is_hidden;

pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(letter),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            letter if letter.is_control() => out.push('\u{fffd}'),
            letter if is_hidden(letter) => {
                let _ = write!(out, "&#x{:x};", u32::from(letter));
            }
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_xml_cannot_hold_is_replaced() {
        assert_eq!(
            escaped("a\u{1b}\0\u{85}\r\u{ffff}b\t\n"),
            "a\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}b\t\n"
        );
        assert_eq!(escaped("gnp.\u{202e}exe"), "gnp.&#x202e;exe");
        assert_eq!(escaped("]]> & <\"'>"), "]]&gt; &amp; &lt;&quot;'&gt;");
    }
}
