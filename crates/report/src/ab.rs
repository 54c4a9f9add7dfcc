//! Programs of the user's, compared: the screen, the page and the forms for programs of a run of
//! `ab`. What is shown is an [`AbAnalysis`].

mod json;
mod page;
mod screen;
mod words;
#[cfg(test)]
mod tests;

pub use json::{SCHEMA, json};
pub use page::{markdown, page};
pub use screen::screen;
