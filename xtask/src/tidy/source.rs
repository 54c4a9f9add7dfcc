//! A Rust file as rules look at it: per line the text, the code without
//! comments and without what stands in strings, and whether it is test code.
//!
//! This is a scanner, not a parser: it knows comments, strings and braces,
//! which is enough for every rule here, and rustfmt keeps the rest regular.

/// One file of the workspace.
pub(crate) struct Source {
    /// Path from the root of the workspace, with `/`.
    pub(crate) path: String,
    /// Lines in order.
    pub(crate) lines: Vec<Line>,
}

/// One line of a file.
pub(crate) struct Line {
    /// As it stands.
    pub(crate) text: String,
    /// With blanks for comments and for the insides of strings.
    pub(crate) code: String,
    /// Whether a string covers a part of it.
    pub(crate) has_string: bool,
    /// Whether it is compiled for tests only.
    pub(crate) is_test: bool,
}

/// A function with a body.
pub(crate) struct Function {
    /// Its name.
    pub(crate) name: String,
    /// Line of its `fn`, from 0.
    pub(crate) first: usize,
    /// Line of its closing brace.
    pub(crate) last: usize,
}

impl Source {
    /// Scans a file. Everything below a `tests` directory is test code.
    pub(crate) fn new(path: &str, text: &str) -> Source {
        let (code, strings) = blank(text);
        let in_tests = path.split('/').any(|part| part == "tests");
        let lines = text.lines().zip(code.lines()).zip(strings.lines());
        let lines = lines.map(|((text, code), strings)| Line {
            text: text.to_owned(),
            code: code.to_owned(),
            has_string: strings.contains(STRING),
            is_test: in_tests,
        });
        let mut source = Source { path: path.to_owned(), lines: lines.collect() };
        source.mark_tests();
        source
    }

    /// The crate it belongs to: `crates/NAME/…` or `xtask/…`.
    pub(crate) fn package(&self) -> &str {
        let mut parts = self.path.split('/');
        match parts.next() {
            Some("crates") => parts.next().unwrap_or(""),
            first => first.unwrap_or(""),
        }
    }

    /// Every function that has a body, nested ones too.
    pub(crate) fn functions(&self) -> Vec<Function> {
        let mut functions = Vec::new();
        for (first, line) in self.lines.iter().enumerate() {
            for at in words(&line.code, "fn") {
                let rest = line.code[at + 2..].trim_start();
                let name: String =
                    rest.chars().take_while(|&c| c.is_alphanumeric() || c == '_').collect();
                if !name.is_empty()
                    && let Some(last) = self.body_end(first, at)
                {
                    functions.push(Function { name, first, last });
                }
            }
        }
        functions
    }

    /// Marks items under `#[cfg(test)]` and `#[test]`.
    fn mark_tests(&mut self) {
        for first in 0..self.lines.len() {
            let code = self.lines[first].code.trim();
            let is_attribute = code.starts_with("#[cfg(test)]") || code.starts_with("#[test]");
            if is_attribute && let Some(last) = self.item_end(first) {
                self.lines[first..=last].iter_mut().for_each(|line| line.is_test = true);
            }
        }
    }

    /// The line that closes the first brace behind this place; `None` if a
    /// semicolon comes before any brace.
    fn body_end(&self, first: usize, column: usize) -> Option<usize> {
        self.end(first, column).filter(|(_, has_body)| *has_body).map(|(line, _)| line)
    }

    /// The last line of the item that begins on this line.
    fn item_end(&self, first: usize) -> Option<usize> {
        self.end(first, 0).map(|(line, _)| line)
    }

    /// The line of the first closed brace or of a semicolon before it, and
    /// whether it is the brace.
    fn end(&self, first: usize, column: usize) -> Option<(usize, bool)> {
        let (mut braces, mut others) = (0_u32, 0_u32);
        for (number, line) in self.lines.iter().enumerate().skip(first) {
            let from = if number == first { column } else { 0 };
            for c in line.code[from..].chars() {
                match c {
                    ';' if braces == 0 && others == 0 => return Some((number, false)),
                    '(' | '[' => others += 1,
                    ')' | ']' => others = others.saturating_sub(1),
                    '{' => braces += 1,
                    '}' if braces == 1 => return Some((number, true)),
                    '}' => braces = braces.saturating_sub(1),
                    _ => {}
                }
            }
        }
        None
    }
}

/// Byte offsets at which `word` stands in `code` as a word of its own.
pub(crate) fn words(code: &str, word: &str) -> Vec<usize> {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let alone = |&(at, _): &(usize, &str)| {
        !is_part(code[..at].chars().next_back()) && !is_part(code[at + word.len()..].chars().next())
    };
    code.match_indices(word).filter(alone).map(|(at, _)| at).collect()
}

/// Stands for a character of a string in the second text of [`blank`].
const STRING: char = 's';

/// Two texts with the lines of `text`: its code with comments and the insides
/// of strings blanked, and a map of what is in strings.
fn blank(text: &str) -> (String, String) {
    let chars: Vec<char> = text.chars().collect();
    let (mut code, mut strings) = (String::new(), String::new());
    let mut at = 0;
    while at < chars.len() {
        let (length, kind) = token(&chars[at..], at.checked_sub(1).map(|before| chars[before]));
        for (i, &c) in chars[at..at + length].iter().enumerate() {
            let is_edge = i == 0 || i + 1 == length;
            code.push(match kind {
                _ if c == '\n' => '\n',
                Kind::Code => c,
                Kind::String if is_edge => c,
                Kind::String | Kind::Comment => ' ',
            });
            strings.push(match kind {
                _ if c == '\n' => '\n',
                Kind::String => STRING,
                Kind::Code | Kind::Comment => ' ',
            });
        }
        at += length;
    }
    (code, strings)
}

#[derive(Clone, Copy)]
enum Kind {
    Code,
    String,
    Comment,
}

/// Length and kind of what begins here; one character of code at a time.
fn token(chars: &[char], before: Option<char>) -> (usize, Kind) {
    let to_end = |length: Option<usize>| length.unwrap_or(chars.len());
    match chars {
        ['/', '/', ..] => (to_end(chars.iter().position(|&c| c == '\n')), Kind::Comment),
        ['/', '*', ..] => (block_comment(chars), Kind::Comment),
        ['"', ..] => (quoted(chars, '"'), Kind::String),
        ['r', '"' | '#', ..]
            if !before.is_some_and(|c| c.is_alphanumeric() && c != 'b' || c == '_') =>
        {
            let hashes = chars[1..].iter().take_while(|&&c| c == '#').count();
            if chars.get(1 + hashes) != Some(&'"') {
                return (1, Kind::Code);
            }
            let close: Vec<char> =
                std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
            let body = &chars[2 + hashes..];
            let end = body.windows(close.len()).position(|window| window == close);
            (to_end(end.map(|end| 2 + hashes + end + close.len())), Kind::String)
        }
        // A character and not a lifetime: `'x'` or an escape.
        ['\'', '\\', ..] | ['\'', _, '\'', ..] => (quoted(chars, '\''), Kind::String),
        _ => (1, Kind::Code),
    }
}

fn block_comment(chars: &[char]) -> usize {
    let (mut depth, mut at) = (0_u32, 0);
    while at + 1 < chars.len() {
        match (chars[at], chars[at + 1]) {
            ('/', '*') => (depth, at) = (depth + 1, at + 2),
            ('*', '/') if depth == 1 => return at + 2,
            ('*', '/') => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
    }
    chars.len()
}

fn quoted(chars: &[char], quote: char) -> usize {
    let mut at = 1;
    while at < chars.len() {
        match chars[at] {
            '\\' => at += 2,
            c if c == quote => return at + 1,
            _ => at += 1,
        }
    }
    chars.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &str) {
        assert_eq!(blank(text).0, expect);
    }

    #[test]
    fn comments_and_strings_are_blanked() {
        check("a // b\nc", "a     \nc");
        check("a /* b /* c */ d */ e", "a                   e");
        check(r#"f("a\"}b", '{', '\'')"#, r#"f("     ", ' ', '  ')"#);
        check(r##"r#"a"b"# 'a 'b: x"##, r##"r      # 'a 'b: x"##);
        check("br\"x\" var\"y\"", "br  \" var\" \"");
    }

    #[test]
    fn functions_and_tests_are_found() {
        let text = "fn a() {\n    if x {\n    }\n}\ntrait T { fn b(x: [u8; 2]); }\n\
                    #[cfg(test)]\nmod tests {\n    fn c() -> fn(u8) { d }\n}\nfn e() {}\n";
        let source = Source::new("crates/model/src/a.rs", text);
        let found = source.functions();
        let found: Vec<_> = found.iter().map(|f| (f.name.as_str(), f.first, f.last)).collect();
        assert_eq!(found, [("a", 0, 3), ("c", 7, 7), ("e", 9, 9)]);
        let tests: Vec<_> = source.lines.iter().map(|line| line.is_test).collect();
        assert_eq!(tests, [false, false, false, false, false, true, true, true, true, false]);
    }
}
