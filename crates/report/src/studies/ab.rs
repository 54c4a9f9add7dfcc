//! Programs of the user's, compared: the screen, the page and the forms for programs of a run of
//! `ab`. What is shown is an [`AbAnalysis`].

mod calls;
pub mod compare;
mod figure;
pub mod history;
mod json;
mod links;
mod page;
mod screen;
#[cfg(test)]
pub(crate) mod tests;
mod words;

pub(crate) use figure::figure;
pub use json::{SCHEMA, json};
pub use page::{first, markdown, page, text};
