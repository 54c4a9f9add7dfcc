//! What is shown, as a tree: the first screen of a run; sections and pages. Forms select and draw
//! them; none reads what they say.

use crate::grid::Grid;
use crate::matrix::Matrix;
use crate::sentence::Text;
use crate::table::Table;

/// A screen.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Screen {
    /// What was measured and where, the study first.
    pub header: Vec<Text>,
    /// How long, how often, and how it ended.
    pub effort: Vec<Text>,
    /// Why no number here may be used; stands above all of them.
    pub alarm: Option<Text>,
    /// The picture of the answer, for forms that can show one.
    pub figure: Option<Figure>,
    /// Tables.
    pub blocks: Vec<Block>,
    /// What marks mean that occur.
    pub legend: Vec<Text>,
    /// What has no number, and why.
    pub problems: Vec<Text>,
    /// What follows, in the order in which it is read.
    pub answers: Vec<Answer>,
}

/// A table.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// Values by methods and settings, which chooses its own form.
    Matrix(Matrix),
    /// As it is.
    Grid(Grid),
    /// Short rows, in as many columns as there is room for.
    Listing(Listing),
}

/// Short rows that flow into columns, downwards.
#[derive(Debug, Clone, PartialEq)]
pub struct Listing {
    /// What it shows.
    pub title: String,
    /// The rows, whose parts line up within a column.
    pub rows: Grid,
}

/// A labelled line: parts that stand by themselves.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// What it is about.
    pub label: Label,
    /// What is said.
    pub said: Vec<Text>,
}

impl Answer {
    /// One of these parts.
    pub fn of<T: Into<Text>>(label: Label, said: impl IntoIterator<Item = T>) -> Answer {
        Answer { label, said: Text::parts(said) }
    }

    /// One of a single part.
    pub fn one(label: Label, said: impl Into<Text>) -> Answer {
        Answer::of(label, [said])
    }
}

iolens_model::words! {
    /// What a line is about; there are no others.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Label {
        /// What is concluded of a program.
        Verdict = "Verdict",
        /// Which method at which size.
        Use = "Use",
        /// The fastest, where nothing is chosen.
        Fastest = "Fastest",
        /// What costs least.
        Cheapest = "Cheapest",
        /// Among writes that are on the device when they return.
        Durable = "Durable",
        /// Where one method passes another.
        Crossover = "Crossover",
        /// Whether sends without a copy pay.
        ZeroCopy = "Zero-copy",
        /// What a model with many threads costs.
        Threads = "Threads",
        /// What a call into the kernel costs.
        Crossing = "Crossing",
        /// What a call costs that stands alone.
        Alone = "Alone",
        /// What of a program's time its start is.
        StartUp = "Start-up",
        /// What is so at other sizes.
        Nearby = "Nearby",
        /// How close the fastest is to what memory allows.
        Limit = "Limit",
        /// Where a difference comes from.
        Why = "Why",
        /// The command that does it again.
        RunIt = "Run it",
        /// How to write it in a program.
        InCode = "In code",
        /// Rare slices that are much slower.
        Stalls = "Stalls",
        /// What cannot be told.
        Unknown = "Unknown",
        /// What two runs do not have in common.
        Differs = "Differs",
        /// What is not as it was.
        Changed = "Changed",
        /// What is.
        Same = "Same",
        /// What may be either.
        Undecided = "Undecided",
        /// What was not measured.
        NotRun = "Not run",
        /// Without which a decision could go wrong.
        Caution = "Caution",
        /// What was noticed besides.
        Notes = "Notes",
        /// How noisy it was, and what was not read.
        Trust = "Trust",
        /// Commands.
        Next = "Next",
        /// The page.
        Report = "Report",
    }
}

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
    pub fn say(said: impl Into<Text>) -> Node {
        Node::Say(said.into())
    }

    /// One that matters less.
    pub fn aside(said: impl Into<Text>) -> Node {
        Node::Aside(said.into())
    }

    /// A heading within a section.
    pub fn heading(heading: impl Into<String>) -> Node {
        Node::Heading(heading.into())
    }

    /// A fold that is closed to begin with.
    pub fn fold(summary: impl Into<Text>, nodes: Vec<Node>) -> Node {
        Node::Fold(Fold { summary: summary.into(), is_open: false, nodes })
    }

    /// Facts; none where there are none.
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
