//! Sentences as spans: what a form may show in its own way, and never has to read back.

/// A part of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Span {
    /// Words, which may be broken at blanks.
    Plain(String),
    /// Something to type, which stays in one piece.
    Code(String),
    /// A file, which a form may make a link of.
    File(String),
    /// Words that stand out.
    Strong(String),
}

impl Span {
    /// What it says, without any form.
    #[must_use]
    pub fn words(&self) -> &str {
        match self {
            Span::Plain(words) | Span::Code(words) | Span::File(words) | Span::Strong(words) => {
                words
            }
        }
    }
}

/// A sentence, or a part of one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Text(pub Vec<Span>);

impl Text {
    /// A sentence of plain words.
    #[must_use]
    pub fn plain(words: impl Into<String>) -> Text {
        Text(vec![Span::Plain(words.into())])
    }

    /// A command.
    #[must_use]
    pub fn code(command: impl Into<String>) -> Text {
        Text(vec![Span::Code(command.into())])
    }

    /// Words that stand out.
    #[must_use]
    pub fn strong(words: impl Into<String>) -> Text {
        Text(vec![Span::Strong(words.into())])
    }

    /// A file.
    #[must_use]
    pub fn file(path: impl Into<String>) -> Text {
        Text(vec![Span::File(path.into())])
    }

    /// The same with more words.
    #[must_use]
    pub fn and(mut self, words: impl Into<String>) -> Text {
        self.0.push(Span::Plain(words.into()));
        self
    }

    /// The same with a command.
    #[must_use]
    pub fn and_code(mut self, command: impl Into<String>) -> Text {
        self.0.push(Span::Code(command.into()));
        self
    }

    /// What it says, without any form.
    #[must_use]
    pub fn words(&self) -> String {
        self.0.iter().map(Span::words).collect()
    }
}

impl From<String> for Text {
    fn from(words: String) -> Text {
        Text::plain(words)
    }
}

impl From<&str> for Text {
    fn from(words: &str) -> Text {
        Text::plain(words)
    }
}
