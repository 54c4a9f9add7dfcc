//! What tests alone need: the rules that every page keeps to, and the docs of exports.

mod export_docs;
pub(crate) mod lint;
