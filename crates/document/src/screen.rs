//! What a run shows first: what it was, a table, answers, how far they are to be trusted,
//! what to do next.

use crate::grid::Grid;
use crate::matrix::Matrix;
use crate::section::Figure;
use crate::text::Text;

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
    /// One of a single part.
    #[must_use]
    pub fn one(label: Label, said: impl Into<Text>) -> Answer {
        Answer { label, said: vec![said.into()] }
    }
}

/// What a line is about; there are no others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Label {
    /// Which method at which size.
    Use,
    /// The fastest, where nothing is chosen.
    Fastest,
    /// What costs least.
    Cheapest,
    /// Among writes that are on the device when they return.
    Durable,
    /// Where one method passes another.
    Crossover,
    /// Whether sends without a copy pay.
    ZeroCopy,
    /// What a model with many threads costs.
    Threads,
    /// What a call into the kernel costs.
    Crossing,
    /// What a call costs that stands alone.
    Alone,
    /// What of a program's time its start is.
    StartUp,
    /// What is so at other sizes.
    Nearby,
    /// How close the fastest is to what memory allows.
    Limit,
    /// Where a difference comes from.
    Why,
    /// The command that does it again.
    RunIt,
    /// How to write it in a program.
    InCode,
    /// Rare slices that are much slower.
    Stalls,
    /// What cannot be told.
    Unknown,
    /// What two runs do not have in common.
    Differs,
    /// What is not as it was.
    Changed,
    /// What is.
    Same,
    /// What may be either.
    Undecided,
    /// What was not measured.
    NotRun,
    /// Without which a decision could go wrong.
    Caution,
    /// What was noticed besides.
    Notes,
    /// How noisy it was, and what was not read.
    Trust,
    /// Commands.
    Next,
    /// The page.
    Report,
}

impl Label {
    /// The word on the screen.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Label::Use => "Use",
            Label::Fastest => "Fastest",
            Label::Cheapest => "Cheapest",
            Label::Durable => "Durable",
            Label::Crossover => "Crossover",
            Label::ZeroCopy => "Zero-copy",
            Label::Threads => "Threads",
            Label::Crossing => "Crossing",
            Label::Alone => "Alone",
            Label::StartUp => "Start-up",
            Label::Nearby => "Nearby",
            Label::Limit => "Limit",
            Label::Why => "Why",
            Label::RunIt => "Run it",
            Label::InCode => "In code",
            Label::Stalls => "Stalls",
            Label::Unknown => "Unknown",
            Label::Differs => "Differs",
            Label::Changed => "Changed",
            Label::Same => "Same",
            Label::Undecided => "Undecided",
            Label::NotRun => "Not run",
            Label::Caution => "Caution",
            Label::Notes => "Notes",
            Label::Trust => "Trust",
            Label::Next => "Next",
            Label::Report => "Report",
        }
    }
}
