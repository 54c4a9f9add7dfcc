//! Lines of text folded at blanks, for a terminal.

use crate::wrap::is_unit;

/// Folds a text at blanks to `width` characters; lines after the first are
/// indented by `indent`. The text's own leading blanks stay; control characters
/// become blanks, since reasons and names come from outside.
#[must_use]
pub fn hanging(text: &str, width: usize, indent: usize) -> String {
    let text = text.replace(char::is_control, " ");
    let lead: String = text.chars().take_while(|c| *c == ' ').collect();
    let mut out = lead.clone();
    let mut column = lead.len();
    let mut line_is_empty = true;
    let mut words = text.split_ascii_whitespace().peekable();
    let mut before = "";
    while let Some(word) = words.next() {
        let length = word.chars().count();
        let unit = words.peek().filter(|next| is_unit(word, next));
        let whole = length + unit.map_or(0, |unit| 1 + unit.chars().count());
        if !line_is_empty && !is_unit(before, word) && column + 1 + whole > width {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            column = indent;
            line_is_empty = true;
        }
        if !line_is_empty {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
        (line_is_empty, before) = (false, word);
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn folds_at_blanks_with_an_indent() {
        assert_eq!(super::hanging("  a bc def ghij", 9, 4), "  a bc\n    def\n    ghij");
        assert_eq!(super::hanging("  a of 12 GiB", 9, 4), "  a of\n    12 GiB");
        assert_eq!(super::hanging("", 9, 4), "");
        assert_eq!(super::hanging("a\x1b[2Jb", 9, 4), "a [2Jb");
    }
}
