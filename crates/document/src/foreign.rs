//! Text from elsewhere: a database, a file, another program.

/// Whether a terminal, or the order of the text on a screen, obeys a character: control characters
/// (C0 and C1), the line and paragraph separators, and what turns the direction of text (Unicode's
/// `Bidi_Control`, UAX #9).
#[must_use]
pub fn is_obeyed(c: char) -> bool {
    let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}')
        || matches!(c, '\u{2066}'..='\u{2069}');
    c.is_control() || turns || matches!(c, '\u{2028}' | '\u{2029}')
}

/// The text with a blank in place of each of these.
#[must_use]
pub fn shown(text: &str) -> String {
    text.replace(is_obeyed, " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_obeyed_is_not_shown() {
        assert_eq!(shown("a\x1b[31m\u{9b}b\u{202e}c\u{2066}é µ"), "a [31m b c é µ");
    }
}
