//! CSV after RFC 4180, line feeds for line ends. Quoting is four lines, so it is ours and not a
//! crate's.

/// Adds one line.
pub fn push_row(out: &mut String, fields: impl Iterator<Item = String>) {
    for (i, field) in fields.enumerate() {
        if i > 0 {
            out.push(',');
        }
        out.push_str(&quote(&field));
    }
    out.push('\n');
}

/// A field, quoted where it has to be: RFC 4180, section 2, rules 5 to 7. A name that a
/// spreadsheet would take for a formula has a `'` before it.
fn quote(field: &str) -> String {
    let is_formula = field.starts_with(['=', '+', '-', '@']) && field.parse::<f64>().is_err();
    let shielded = if is_formula { format!("'{field}") } else { field.to_owned() };
    let field = &shielded;
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}
