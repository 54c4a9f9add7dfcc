//! Commands as they are printed: what a POSIX shell reads back as the same words.

/// A command to be typed: `dd 'if=/data/big file.bin' bs=128K`.
#[must_use]
pub fn join<W: AsRef<str>>(words: impl IntoIterator<Item = W>) -> String {
    words.into_iter().map(|word| quoted(word.as_ref())).collect::<Vec<_>>().join(" ")
}

/// One word of a command. Unlike what `shlex` writes, `if=FILE` and `of={dst}` stay as they
/// are: behind a program's name no shell makes anything else of them.
#[must_use]
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%{}".contains(c);
    let may_expand = word.contains('{') && (word.contains(',') || word.contains(".."));
    match !word.is_empty() && word.chars().all(is_plain) && !may_expand {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_a_shell() {
        let check = |word: &str, expect: &str| assert_eq!(quoted(word), expect);
        check("64KiB..1MiB", "64KiB..1MiB");
        check("if=/a/b-c.bin", "if=/a/b-c.bin");
        check("of={dst}", "of={dst}");
        check("{a,b}", "'{a,b}'");
        check("/a b/it's", r"'/a b/it'\''s'");
        check("~", "'~'");
        check("", "''");
        assert_eq!(join(["dd", "if=f; x", "bs=128K"]), "dd 'if=f; x' bs=128K");
    }
}
