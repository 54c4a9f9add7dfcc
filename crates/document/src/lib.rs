//! What is shown, as a tree without any form: tables of values, sentences made of spans,
//! labelled answers, sections of them. [`terminal`] and [`html`] draw it. Pure, and knows no
//! study.

#![forbid(unsafe_code)]

pub mod csv;
pub mod fold;
mod grid;
pub mod html;
pub mod markdown;
mod matrix;
mod number;
mod screen;
mod section;
pub mod table;
pub mod terminal;
mod text;
mod wrap;

pub use grid::{Align, Column, Grid, Row};
pub use matrix::{Cell, Head, Matrix, MatrixRow, Section as MatrixSection};
pub use number::{Factor, change, change_by, change_interval, ends, unusable};
pub use screen::{Answer, Block, Label, Listing, Screen};
pub use section::{Fact, Figure, Fold, Node, Page, Section};
pub use terminal::Style;
pub use text::{Span, Text};
