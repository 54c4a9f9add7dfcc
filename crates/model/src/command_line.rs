//! Command lines: as they are printed, and as they are stored. A stored line is shown and sent to
//! others, so it is stored without secrets that can be told by their form.
//!
//! The forms: `--token=SECRET`, `--password SECRET` and other flags whose name ends so;
//! `PGPASSWORD=SECRET`; `sshpass -p SECRET` and `-pSECRET`; `https://user:SECRET@host`. They
//! are found in a word that is itself a command line, too.

use std::ops::Range;

/// What stands in the place of a secret.
pub const HIDDEN: &str = "***";

/// How the name of a secret ends, without what separates its parts.
const NAME_ENDS: [&str; 8] =
    ["password", "passwd", "passphrase", "secret", "token", "sshpass", "apikey", "accesskey"];

/// A program that is given a password as `-p`; see sshpass(1).
const SSHPASS: &str = "sshpass";

/// The words of a command without its secrets.
pub fn redacted(words: &[String]) -> Vec<String> {
    Redactor::default().words(words)
}

/// Whether a secret of these words was taken out before: what is left is not the command.
pub fn is_redacted(words: &[String]) -> bool {
    let mut redactor = Redactor::default();
    redactor.words(words);
    redactor.was_hidden
}

/// What the next word is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Any,
    Secret,
    Sshpass(Sshpass),
}

/// The same behind `sshpass`, whose options end with the program that it starts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sshpass {
    Option,
    Secret,
    Value,
}

#[derive(Default)]
struct Redactor {
    was_hidden: bool,
}

impl Redactor {
    fn words(&mut self, words: &[String]) -> Vec<String> {
        let mut next = Next::Any;
        words.iter().map(|word| self.next_word(word, &mut next)).collect()
    }

    fn next_word(&mut self, word: &str, next: &mut Next) -> String {
        match *next {
            Next::Secret => {
                *next = Next::Any;
                return self.hidden(word);
            }
            Next::Sshpass(Sshpass::Secret) => {
                *next = Next::Sshpass(Sshpass::Option);
                return self.hidden(word);
            }
            Next::Sshpass(Sshpass::Value) => {
                *next = Next::Sshpass(Sshpass::Option);
                return self.word(word);
            }
            Next::Sshpass(Sshpass::Option) if word.len() > 1 && word.starts_with('-') => {
                return self.option_of_sshpass(word, next);
            }
            Next::Sshpass(Sshpass::Option) | Next::Any => {}
        }
        *next = match word {
            word if is_sshpass(word) => Next::Sshpass(Sshpass::Option),
            word if is_secret_flag(word) => Next::Secret,
            _ => Next::Any,
        };
        self.word(word)
    }

    /// An option of `sshpass`, or several in one word.
    fn option_of_sshpass(&mut self, word: &str, next: &mut Next) -> String {
        for (at, letter) in word.char_indices().skip(1) {
            let (before, rest) = word.split_at(at + letter.len_utf8());
            match (letter, rest.is_empty()) {
                ('p', true) => *next = Next::Sshpass(Sshpass::Secret),
                ('p', false) => return format!("{before}{}", self.hidden(rest)),
                ('f' | 'd' | 'P', true) => *next = Next::Sshpass(Sshpass::Value),
                // The rest is the value of this one.
                ('f' | 'd' | 'P' | 'e', false) => break,
                _ => {}
            }
        }
        word.to_owned()
    }

    fn word(&mut self, word: &str) -> String {
        if let Some(value) = assigned_secret(word) {
            return format!("{}{}", &word[..value], self.hidden(&word[value..]));
        }
        let is_line = |c: char| c.is_whitespace() || matches!(c, '\'' | '"' | '\\');
        match word.contains(is_line) {
            true => self.line(word),
            false => self.addresses(word),
        }
    }

    /// A word that may be a command line. What is not changed stays as it was written.
    fn line(&mut self, line: &str) -> String {
        let (ranges, words): (Vec<_>, Vec<_>) = pieces(line).into_iter().unzip();
        let (mut out, mut done) = (String::new(), 0);
        for (Range { start, end }, (old, new)) in
            ranges.into_iter().zip(words.iter().zip(self.words(&words)))
        {
            out.push_str(&line[done..start]);
            match *old == new {
                true => out.push_str(&line[start..end]),
                false => out.push_str(&quoted(&new)),
            }
            done = end;
        }
        out.push_str(&line[done..]);
        out
    }

    /// The passwords of addresses: `scheme://user:password@host`.
    fn addresses(&mut self, word: &str) -> String {
        let Some(at) = word.find("://") else { return word.to_owned() };
        let (before, rest) = word.split_at(at + "://".len());
        let (authority, behind) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let secret = authority.rfind('@').and_then(|end| {
            let start = authority[..end].find(':')? + 1;
            (start < end).then_some(start..end)
        });
        let authority = match secret {
            Some(Range { start, end }) => format!(
                "{}{}{}",
                &authority[..start],
                self.hidden(&authority[start..end]),
                &authority[end..]
            ),
            None => authority.to_owned(),
        };
        format!("{before}{authority}{}", self.addresses(behind))
    }

    fn hidden(&mut self, secret: &str) -> String {
        self.was_hidden |= secret == HIDDEN;
        HIDDEN.to_owned()
    }
}

/// Where the value of a secret begins in `NAME=VALUE`, which may stand behind something else,
/// as in `--env=NAME=VALUE`.
fn assigned_secret(word: &str) -> Option<usize> {
    let first = word.find(char::is_whitespace).unwrap_or(word.len());
    let equals = word[..first].match_indices('=').map(|(at, _)| at);
    equals
        .filter(|at| at + 1 < word.len())
        .find(|at| is_secret(name_before(&word[..*at])))
        .map(|at| at + 1)
}

/// The name at the end of a text.
fn name_before(text: &str) -> &str {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    text.rfind(|c| !is_part(c)).map_or(text, |at| {
        let behind = at + text[at..].chars().next().map_or(0, char::len_utf8);
        &text[behind..]
    })
}

/// Whether a flag's value, which is the next word, is a secret.
fn is_secret_flag(word: &str) -> bool {
    word.starts_with('-') && name_before(word) == word && is_secret(word)
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit()).trim_start_matches('-');
    let squeezed: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    name == "pass" || name.ends_with("_pass") || NAME_ENDS.iter().any(|end| squeezed.ends_with(end))
}

fn is_sshpass(word: &str) -> bool {
    word.rsplit(['/', '=']).next() == Some(SSHPASS)
}

/// The words of a command line as a shell reads them, each with where it stands. A quotation
/// that is not closed goes to the end.
fn pieces(line: &str) -> Vec<(Range<usize>, String)> {
    let (mut all, mut word) = (Vec::new(), None::<(usize, String)>);
    let (mut letters, mut quote) = (line.char_indices(), None);
    while let Some((at, letter)) = letters.next() {
        if quote.is_none() && letter.is_whitespace() {
            all.extend(word.take().map(|(start, text)| (start..at, text)));
            continue;
        }
        let (_, text) = word.get_or_insert_with(|| (at, String::new()));
        match (quote, letter) {
            (None, '\'' | '"') => quote = Some(letter),
            (Some(open), _) if open == letter => quote = None,
            (None | Some('"'), '\\') => text.extend(letters.next().map(|(_, letter)| letter)),
            _ => text.push(letter),
        }
    }
    all.extend(word.map(|(start, text)| (start..line.len(), text)));
    all
}

// Commands as they are printed: what a POSIX shell reads back as the same words.

/// A command to be typed: `dd 'if=/data/big file.bin' bs=128K`.
pub fn join<W: AsRef<str>>(words: impl IntoIterator<Item = W>) -> String {
    words.into_iter().map(|word| quoted(word.as_ref())).collect::<Vec<_>>().join(" ")
}

/// One word of a command. Unlike what `shlex` writes, `if=FILE` and `of={dst}` stay as they
/// are: behind a program's name no shell makes anything else of them.
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
    use proptest::prelude::*;

    use super::*;

    fn words(line: &str) -> Vec<String> {
        pieces(line).into_iter().map(|(_, word)| word).collect()
    }

    #[track_caller]
    fn check(line: &str, expect: &str) {
        assert_eq!(redacted(&words(line)), words(expect), "{line}");
    }

    #[test]
    fn known_forms_of_secrets_are_taken_out() {
        check("sshpass -p hush ssh -p 22 h", "sshpass -p *** ssh -p 22 h");
        check("/usr/bin/sshpass -vphush ssh h", "/usr/bin/sshpass -vp*** ssh h");
        check("sshpass -P word: -p hush ssh h", "sshpass -P word: -p *** ssh h");
        check("kubectl --token=hush exec -i pod --", "kubectl --token=*** exec -i pod --");
        check("a --password hush --db-passwd hush b", "a --password *** --db-passwd *** b");
        check("env SSHPASS=hush PG_PASS=hush sh", "env SSHPASS=*** PG_PASS=*** sh");
        check("docker run --env=MY_API_KEY=hush x", "docker run --env=MY_API_KEY=*** x");
        check("get https://me:hush@h/a?b http://i:j@k", "get https://me:***@h/a?b http://i:***@k");
        check("get 'https://h/?token=hush&a=b'", "get 'https://h/?token=***'");
        check("env 'PASSWORD=hush hush' sh", "env PASSWORD=*** sh");
    }

    #[test]
    fn a_word_that_is_a_command_line_is_read_too() {
        check(
            "iolens run net --peer 'sshpass -p hush ssh  -o \"A B\" h'",
            "iolens run net --peer \"sshpass -p '***' ssh  -o \\\"A B\\\" h\"",
        );
        check("i --peer='sshpass -phush ssh h'", "i \"--peer=sshpass '-p***' ssh h\"");
        check(
            "ssh -o 'ProxyCommand=sshpass -p hush ssh jump' h",
            "ssh -o \"ProxyCommand=sshpass -p '***' ssh jump\" h",
        );
        check("sh -c \"PASSWORD='hush hush' a | b > c\"", "sh -c \"PASSWORD=***\"");
        check("sh -c \"a | TOKEN='hush hush' b\"", "sh -c \"a | 'TOKEN=***' b\"");
    }

    #[test]
    fn what_only_looks_alike_stays() {
        for line in [
            "ssh -o PasswordAuthentication=no -o NumberOfPasswordPrompts=0 -p 22 user@host",
            "kubectl --token-file /a exec -i pod --",
            "sshpass -f /a/password ssh h",
            "sshpass -e ssh -p 22 h",
            "iolens run net --passes 3 --name 'it is before & after' --sizes 1KiB..1MiB",
            "iolens run net --peer 'srun --overlap -w node2' --peer-address 2001:db8::1",
            "iolens run server --external 'a=b {port}' --name \"it's\"",
            "get ssh://git@host:22/a https://host:80/@",
            "env PWD=/a PASSWORD= sh",
            "mysql --password",
        ] {
            assert_eq!(redacted(&words(line)), words(line), "{line}");
            assert!(!is_redacted(&words(line)), "{line}");
        }
    }

    #[test]
    fn what_was_taken_out_is_seen() {
        assert!(is_redacted(&words("sshpass -p '***' ssh h")));
        assert!(is_redacted(&words("sh -c 'sshpass -p hush a | env \"TOKEN=***\" b'")));
        assert!(!is_redacted(&words("sshpass -p hush ssh '***'")));
    }

    /// A line with the secret in one of the forms.
    fn with_secret(form: usize, secret: &str) -> Vec<String> {
        let own = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        match form {
            0 => own(&["sshpass", "-p", secret, "ssh", "h"]),
            1 => own(&["sshpass", &format!("-p{secret}"), "ssh", "h"]),
            2 => own(&["kubectl", &format!("--token={secret}"), "exec"]),
            3 => own(&["a", "--password", secret, "b"]),
            4 => own(&["env", &format!("PGPASSWORD={secret}"), "sh"]),
            _ => {
                let secret = secret.replace(['/', '?', '#', ' ', '\t'], "");
                own(&["get", &format!("https://user:{secret}@host/a")])
            }
        }
    }

    proptest! {
        #[test]
        fn no_secret_is_left(
            secret in "[A-Z]{6}[ -~\t]{0,6}[A-Z]{6}",
            form in 0_usize..6,
            depth in 0_usize..3,
            around in prop::collection::vec("[a-f0-9 .:/=]{0,8}", 0..3),
        ) {
            let mut line = with_secret(form, &secret);
            for _ in 0..depth {
                line = vec!["sh".to_owned(), "-c".to_owned(), join(&line)];
            }
            let line: Vec<String> =
                around.iter().cloned().chain(line).chain(around.iter().cloned()).collect();
            let shown = join(redacted(&line));
            prop_assert!(shown.contains(HIDDEN), "{shown}");
            for part in [&secret[..6], &secret[secret.len() - 6..]] {
                prop_assert!(!shown.contains(part), "{shown}");
            }
            prop_assert_eq!(redacted(&redacted(&line)), redacted(&line));
            prop_assert!(is_redacted(&redacted(&line)));
        }

        // Without the letters p, s and t, and @, there is no form.
        #[test]
        fn a_line_without_secrets_is_not_changed(
            line in prop::collection::vec("[a-oq-ru-z0-9A-OQ-RU-Z '\"\\\\=:/.*{}é-]{0,24}", 0..6),
        ) {
            prop_assert_eq!(&redacted(&line), &line);
            prop_assert!(!is_redacted(&line));
        }

        #[test]
        fn no_words_make_it_panic(line in prop::collection::vec(".{0,24}", 0..6)) {
            let _ = (redacted(&line), is_redacted(&line));
        }
    }

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
