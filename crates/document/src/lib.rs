//! What is shown, as a tree without any form: tables of values, sentences made of spans,
//! labelled answers. [`terminal`] draws it. Pure, and knows no study.

#![forbid(unsafe_code)]

mod grid;
mod matrix;
mod number;
mod screen;
pub mod terminal;
mod text;
mod wrap;

pub use grid::{Align, Column, Grid, Row};
pub use matrix::{Cell, Head, Matrix, MatrixRow, Section};
pub use number::{Factor, change, ends, unusable};
pub use screen::{Answer, Block, Label, Listing, Screen};
pub use terminal::Style;
pub use text::{Span, Text};
