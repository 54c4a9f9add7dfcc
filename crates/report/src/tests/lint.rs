//! What every page must keep to, whatever run it is of: the rules of DESIGN as one function
//! over the text of a page, which tests give the pages of all made-up runs to.

mod colours;
mod figures;
mod markup;
mod references;
mod tests;

/// Bytes that a page may have, up to 500 cells.
const BYTES_MAX: usize = 2_000_000;

/// What is wrong with a page: the rule in a word, and where it is broken.
pub(crate) fn faults(page: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if page.len() > BYTES_MAX {
        faults.push(format!("size: {} bytes", page.len()));
    }
    faults
        .extend(references::references(page).into_iter().map(|found| format!("network: {found}")));
    faults.extend(colours::faults(page));
    faults.extend(figures::faults(page));
    faults
}
