//! The study `net`: its screens, sections and figures.

pub(crate) mod figures;
pub(crate) mod screen;
pub(crate) mod sections;
