//! Text in the Markdown of GitHub.

/// Text that is shown as it is: names come from users.
#[must_use]
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '|' | '*' | '_' | '[' | ']' | '#' | '\\' | '`' | '~' | '<' | '>' | '&' => {
                out.extend(['\\', c]);
            }
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// A part that opens when clicked; nothing where it is empty. Markdown within HTML wants
/// empty lines around it.
#[must_use]
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
    fn a_name_cannot_break_out_of_its_cell() {
        assert_eq!(escaped("a|b_c\n<img>"), "a\\|b\\_c \\<img\\>");
    }

    #[test]
    fn what_is_empty_is_not_folded() {
        assert_eq!(folded("more", "\n"), "");
        assert!(folded("more", "text\n").ends_with("text\n\n</details>\n"));
    }
}
