//! What tests alone need: the rules that every page keeps to, and the docs of exports.

mod export_docs;
pub(crate) mod lint;

/// The fields of a line of our CSV.
pub(crate) fn csv_fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        let last = fields.last_mut().expect("there is always one field");
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                last.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            other => last.push(other),
        }
    }
    fields
}
