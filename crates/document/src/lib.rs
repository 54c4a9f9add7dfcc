//! What is shown, as a tree without any form: tables of values, sentences made of spans,
//! labelled answers, sections of them. [`terminal`] and [`html`] draw it. Pure, and knows no
//! study.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod grid;
pub mod html;
mod matrix;
mod number;
pub mod plain;
pub mod sentence;
pub mod table;
pub mod terminal;
mod tree;

pub use grid::{Align, Column, Grid, Row};
pub use matrix::{Cell, Head, Matrix, MatrixRow, Section as MatrixSection};
pub use number::{Factor, change, change_by, change_interval, ends, unusable};
pub use sentence::{Joined, Span, Text};
pub use terminal::Style;
pub use tree::{Answer, Block, Fact, Figure, Fold, Label, Listing, Node, Page, Screen, Section};
