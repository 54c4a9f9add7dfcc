//! What stands below a first screen, and on a page: sections of sentences, tables, facts and
//! figures. Forms select and draw them; none reads what they say.

use crate::screen::{Block, Screen};
use crate::table::Table;
use crate::text::Text;

/// A part with a heading.
#[derive(Debug, Clone, PartialEq)]
pub struct Section {
    /// Names it in links.
    pub id: &'static str,
    /// Its heading.
    pub heading: String,
    /// What it holds, in order.
    pub nodes: Vec<Node>,
}

impl Section {
    /// A section.
    #[must_use]
    pub fn new(id: &'static str, heading: impl Into<String>, nodes: Vec<Node>) -> Section {
        Section { id, heading: heading.into(), nodes }
    }
}

/// A part of a section.
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    /// A paragraph.
    Say(Text),
    /// One that matters less.
    Aside(Text),
    /// Why numbers must not be used.
    Alarm(Text),
    /// Sentences that stand by themselves.
    List(Vec<Text>),
    /// A heading within the section.
    Heading(String),
    /// The first screen, which says on its own what was measured.
    Screen(Box<Screen>),
    /// A table.
    Table(Table),
    /// A table as first screens have them.
    Block(Block),
    /// Names and what they are.
    Facts(Vec<Fact>),
    /// Facts by what they are about; side by side where there is room.
    Groups(Vec<(String, Vec<Node>)>),
    /// A drawing, for forms that can show one.
    Figure(Figure),
    /// Drawings side by side.
    Row(Vec<Figure>),
    /// What is opened by who wants it.
    Fold(Fold),
    /// Something to copy, as it is.
    Code(String),
}

impl Node {
    /// A paragraph.
    #[must_use]
    pub fn say(said: impl Into<Text>) -> Node {
        Node::Say(said.into())
    }

    /// One that matters less.
    #[must_use]
    pub fn aside(said: impl Into<Text>) -> Node {
        Node::Aside(said.into())
    }

    /// A heading within a section.
    #[must_use]
    pub fn heading(heading: impl Into<String>) -> Node {
        Node::Heading(heading.into())
    }

    /// A fold that is closed to begin with.
    #[must_use]
    pub fn fold(summary: impl Into<Text>, nodes: Vec<Node>) -> Node {
        Node::Fold(Fold { summary: summary.into(), is_open: false, nodes })
    }

    /// Facts; none where there are none.
    #[must_use]
    pub fn facts(facts: Vec<Fact>) -> Option<Node> {
        (!facts.is_empty()).then_some(Node::Facts(facts))
    }
}

/// A name and what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// The name.
    pub name: String,
    /// What it is.
    pub value: Text,
    /// Whether it is a reason why it is not known.
    pub is_faint: bool,
}

impl Fact {
    /// A fact that is known.
    #[must_use]
    pub fn new(name: impl Into<String>, value: impl Into<Text>) -> Fact {
        Fact { name: name.into(), value: value.into(), is_faint: false }
    }
}

/// What is opened by who wants it.
#[derive(Debug, Clone, PartialEq)]
pub struct Fold {
    /// What stands there while it is closed.
    pub summary: Text,
    /// Whether it is open to begin with.
    pub is_open: bool,
    /// What it holds.
    pub nodes: Vec<Node>,
}

/// A drawing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figure {
    /// Names it in links and files.
    pub id: String,
    /// What it shows; empty for one that says so itself.
    pub caption: Text,
    /// SVG for the page around it.
    pub wide: String,
    /// The same for a narrow screen; `None` for one that scrolls there.
    pub narrow: Option<String>,
    /// Lines of different methods in it.
    pub lines: usize,
    /// The same numbers.
    pub twin: Option<Table>,
    /// What follows from it, in a line.
    pub sum: String,
}

/// A page.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Page {
    /// What made it.
    pub generator: String,
    /// For the tab of a browser.
    pub title: String,
    /// What kind of page it is, above the heading.
    pub mark: Vec<Text>,
    /// What it says first.
    pub heading: String,
    /// When, where, how.
    pub meta: Vec<Text>,
    /// Styles of what is drawn on it.
    pub style: String,
    /// The sections.
    pub sections: Vec<Section>,
    /// The last line.
    pub footer: String,
}
