//! A Rust file as rules look at it: per line the text, the code without
//! comments and without what stands in strings, and whether it is test code.
//!
//! The compiler's own lexer tells comments, strings and braces apart, which is enough for every
//! rule here, and rustfmt keeps the rest regular.

use ra_ap_rustc_lexer::{FrontmatterAllowed, LiteralKind, TokenKind, tokenize};

use super::Finding;

/// One file of the workspace.
pub(crate) struct Source {
    /// Path from the root of the workspace, with `/`.
    pub(crate) path: String,
    /// Lines in order.
    pub(crate) lines: Vec<Line>,
}

/// One line of a file.
pub(crate) struct Line {
    /// From 1.
    pub(crate) number: usize,
    /// As it stands.
    pub(crate) text: String,
    /// With blanks for comments, and [`INSIDE`] for what is in strings.
    pub(crate) code: String,
    /// Whether it is compiled for tests only.
    pub(crate) is_test: bool,
}

/// A function with a body.
pub(crate) struct Function {
    /// Its name.
    pub(crate) name: String,
    /// The number of the line with its `fn`.
    pub(crate) first: usize,
    /// That of its closing brace.
    pub(crate) last: usize,
}

impl Line {
    /// Whether a string covers a part of it.
    pub(crate) fn has_string(&self) -> bool {
        self.code.contains(['"', INSIDE])
    }
}

impl Source {
    /// Scans a file. Everything below a `tests` directory is test code.
    pub(crate) fn new(path: &str, text: &str) -> Source {
        let code = blank(text);
        let is_test = path.split('/').any(|part| part == "tests");
        let lines = (1..).zip(text.lines().zip(code.lines())).map(|(number, (text, code))| Line {
            number,
            text: text.to_owned(),
            code: code.to_owned(),
            is_test,
        });
        let mut source = Source { path: path.to_owned(), lines: lines.collect() };
        source.mark_tests();
        source
    }

    /// Lines that are not compiled for tests only.
    pub(crate) fn own_lines(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(|line| !line.is_test)
    }

    /// Something on a line that breaks a rule.
    pub(crate) fn finding(&self, line: usize, message: impl Into<String>) -> Finding {
        Finding::new(&self.path, line, message)
    }

    /// The crate it belongs to: `crates/NAME/…`, `crates/studies/NAME/…` or `xtask/…`.
    pub(crate) fn package(&self) -> &str {
        let folders = ["crates/studies/", "crates/"].into_iter();
        let rest = folders.filter_map(|folder| self.path.strip_prefix(folder)).next();
        rest.unwrap_or(&self.path).split('/').next().unwrap_or("")
    }

    /// Every function that has a body, nested ones too.
    pub(crate) fn functions(&self) -> Vec<Function> {
        let mut functions = Vec::new();
        for line in &self.lines {
            for at in words(&line.code, "fn") {
                let rest = line.code[at + 2..].trim_start();
                let name: String = rest.chars().take_while(|&c| is_of_word(c)).collect();
                if let Some((last, true)) = self.end(line.number, at)
                    && !name.is_empty()
                {
                    functions.push(Function { name, first: line.number, last });
                }
            }
        }
        functions
    }

    /// Marks items under `#[cfg(test)]` and `#[test]`.
    fn mark_tests(&mut self) {
        for at in 0..self.lines.len() {
            let code = self.lines[at].code.trim();
            let is_attribute = code.starts_with("#[cfg(test)]") || code.starts_with("#[test]");
            if is_attribute && let Some((last, _)) = self.end(at + 1, 0) {
                self.lines[at..last].iter_mut().for_each(|line| line.is_test = true);
            }
        }
    }

    /// The line of the first closed brace or of a semicolon before it, and
    /// whether it is the brace.
    fn end(&self, first: usize, column: usize) -> Option<(usize, bool)> {
        let (mut braces, mut others) = (0_u32, 0_u32);
        for line in &self.lines[first - 1..] {
            let from = if line.number == first { column } else { 0 };
            for c in line.code[from..].chars() {
                match c {
                    ';' if braces == 0 && others == 0 => return Some((line.number, false)),
                    '(' | '[' => others += 1,
                    ')' | ']' => others = others.saturating_sub(1),
                    '{' => braces += 1,
                    '}' if braces == 1 => return Some((line.number, true)),
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
    let alone = |&(at, _): &(usize, &str)| {
        !code[..at].ends_with(is_of_word) && !code[at + word.len()..].starts_with(is_of_word)
    };
    code.match_indices(word).filter(alone).map(|(at, _)| at).collect()
}

/// Whether a character may be part of a name.
pub(crate) fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Stands for a character within a string.
const INSIDE: char = '\0';

/// The code of a text, line by line as it stands, with comments and the insides of strings
/// replaced.
fn blank(text: &str) -> String {
    let (mut code, mut rest) = (String::new(), text);
    for token in tokenize(text, FrontmatterAllowed::No) {
        let (own, behind) = rest.split_at(token.len as usize);
        rest = behind;
        let last = own.chars().count() - 1;
        code.extend(own.chars().enumerate().map(|(at, c)| match token.kind {
            _ if c == '\n' => c,
            TokenKind::LineComment { .. } | TokenKind::BlockComment { .. } => ' ',
            TokenKind::Literal { kind, .. } if at > 0 && at < last && !is_number(kind) => INSIDE,
            _ => c,
        }));
    }
    code
}

fn is_number(kind: LiteralKind) -> bool {
    matches!(kind, LiteralKind::Int { .. } | LiteralKind::Float { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &str) {
        assert_eq!(blank(text).replace(INSIDE, " "), expect);
    }

    #[test]
    fn comments_and_strings_are_blanked() {
        check("a // b\nc", "a     \nc");
        check("a /* b /* c */ d */ e", "a                   e");
        check(r#"f("a\"}b", '{', '\'')"#, r#"f("     ", ' ', '  ')"#);
        check(r##"r#"a"b"# 'a 'b: x"##, r##"r      # 'a 'b: x"##);
        check("br\"x\" var\"y\"", "b   \" var\" \"");
    }

    #[test]
    fn functions_and_tests_are_found() {
        let text = "fn a() {\n    if x {\n    }\n}\ntrait T { fn b(x: [u8; 2]); }\n\
                    #[cfg(test)]\nmod tests {\n    fn c() -> fn(u8) { d }\n}\nfn e() {}\n";
        let source = Source::new("crates/model/src/a.rs", text);
        let found = source.functions();
        let found: Vec<_> = found.iter().map(|f| (f.name.as_str(), f.first, f.last)).collect();
        assert_eq!(found, [("a", 1, 4), ("c", 8, 8), ("e", 10, 10)]);
        let tests: Vec<_> = source.lines.iter().map(|line| line.is_test).collect();
        assert_eq!(tests, [false, false, false, false, false, true, true, true, true, false]);
    }
}
