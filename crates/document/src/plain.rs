//! Text from elsewhere, a database, a file, another program: as it may be shown, in CSV, and in the
//! Markdown of GitHub.

/// Whether a terminal, or the order of the text on a screen, obeys a character: control characters
/// (C0 and C1), the line and paragraph separators, and what turns the direction of text (Unicode's
/// `Bidi_Control`, UAX #9).
pub fn is_obeyed(c: char) -> bool {
    let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}')
        || matches!(c, '\u{2066}'..='\u{2069}');
    c.is_control() || turns || matches!(c, '\u{2028}' | '\u{2029}')
}

/// The text with a blank in place of each of these.
pub fn shown(text: &str) -> String {
    text.replace(is_obeyed, " ")
}

/// Adds one line of CSV after RFC 4180, with a line feed at its end. Quoting is four lines, so it
/// is ours and not a crate's.
pub fn push_row(out: &mut String, fields: impl Iterator<Item = String>) {
    for (i, field) in fields.enumerate() {
        if i > 0 {
            out.push(',');
        }
        out.push_str(&quote(&field));
    }
    out.push('\n');
}

/// A field, quoted where it has to be: RFC 4180, section 2, rules 5 to 7. A name that a
/// spreadsheet would take for a formula has a `'` before it.
fn quote(field: &str) -> String {
    let is_formula = field.starts_with(['=', '+', '-', '@']) && field.parse::<f64>().is_err();
    let shielded = if is_formula { format!("'{field}") } else { field.to_owned() };
    let field = &shielded;
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

/// Text that is shown as it is: names come from users.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '|' | '*' | '_' | '[' | ']' | '#' | '\\' | '`' | '~' | '<' | '>' | '&' => {
                out.extend(['\\', c]);
            }
            c if is_obeyed(c) => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// A part that opens when clicked; nothing where it is empty. Markdown within HTML wants
/// empty lines around it.
pub fn folded(summary: &str, text: &str) -> String {
    match text.trim_end() {
        "" => String::new(),
        text => format!("\n<details><summary>{summary}</summary>\n\n{text}\n\n</details>\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_obeyed_is_not_shown() {
        assert_eq!(shown("a\x1b[31m\u{9b}b\u{202e}c\u{2066}é µ"), "a [31m b c é µ");
    }

    #[test]
    fn a_field_is_quoted_where_it_has_to_be() {
        let mut out = String::new();
        push_row(&mut out, ["send", "a, \"b\"", "=1+1", "-2"].map(String::from).into_iter());
        assert_eq!(out, "send,\"a, \"\"b\"\"\",'=1+1,-2\n");
    }

    #[test]
    fn a_name_cannot_break_out_of_its_cell() {
        assert_eq!(escaped("a|b_c\n<img>"), "a\\|b\\_c \\<img\\>");
    }

    #[test]
    fn what_is_empty_is_not_folded() {
        assert_eq!(folded("more", "\n"), "");
        assert!(folded("more", "text\n").ends_with("text\n\n</details>\n"));
    }
}
