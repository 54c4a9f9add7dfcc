//! An audit as text for a terminal: what is wrong first, then what was looked
//! at and what was not.

use std::fmt::Write as _;

use crate::finding::{Audit, Audits, ColumnUse, Finding, GateUse, Severity};

/// All files, folded to `width` columns.
pub fn render(audits: &Audits, width: usize) -> String {
    let mut out = String::new();
    for audit in &audits.files {
        file(&mut out, audit, width);
        out.push('\n');
    }
    let bounds: Vec<String> = audits
        .bounds
        .iter()
        .map(|bound| {
            let origin = if bound.given { "given" } else { bound.option };
            format!("{} {} ({origin})", bound.what, bound.bound)
        })
        .collect();
    let text =
        format!("Bounds (defaults; set yours with the option shown): {}.", bounds.join(", "));
    fold(&mut out, &text, width, 2);
    out
}

fn file(out: &mut String, audit: &Audit, width: usize) {
    let rows = match audit.rows {
        1 => "1 row".to_owned(),
        rows => format!("{rows} rows"),
    };
    let unchecked = match audit.unchecked {
        0 => String::new(),
        n => format!(", {n} not checked"),
    };
    let text = format!(
        "{}: {}, {rows}: {} impossible, {} suspicious, {} pass{unchecked}",
        audit.file,
        audit.format.word(),
        audit.impossible,
        audit.suspicious,
        audit.passed,
    );
    fold(out, &text, width, 2);
    let remarks = |finding: &&Finding| finding.severity == Severity::Remark;
    for finding in audit.findings.iter().filter(|finding| !remarks(finding)) {
        fold(out, &line(finding), width, 4);
    }
    for finding in audit.findings.iter().filter(remarks) {
        fold(out, &line(finding), width, 4);
    }
    columns(out, &audit.columns, width);
    if !audit.gates.is_empty() {
        let gate = |gate: &GateUse| format!("{} {} ({})", gate.gate, gate.name, gate.judged);
        let gates: Vec<String> = audit.gates.iter().map(gate).collect();
        let text = format!("  gates that had their numbers (how often): {}", gates.join(", "));
        fold(out, &text, width, 4);
    }
    for note in &audit.notes {
        fold(out, &format!("  {note}"), width, 4);
    }
}

fn line(finding: &Finding) -> String {
    let lines = match finding.lines.as_slice() {
        [_, _, ..] => {
            let lines: Vec<String> = finding.lines.iter().map(usize::to_string).collect();
            format!(" {}", lines.join(", "))
        }
        _ => String::new(),
    };
    format!(
        "  {} {}{lines}: gate {} ({}): {}",
        finding.severity.word(),
        finding.place,
        finding.gate,
        finding.name,
        finding.text
    )
}

fn columns(out: &mut String, columns: &[ColumnUse], width: usize) {
    let used = |column: &ColumnUse| {
        let quantity = column.quantity?;
        let remark = column.remark.as_ref().map(|r| format!(" ({r})")).unwrap_or_default();
        let same = column.column == quantity && remark.is_empty();
        Some(if same {
            quantity.to_owned()
        } else {
            format!("{} = {quantity}{remark}", column.column)
        })
    };
    let mapped: Vec<String> = columns.iter().filter_map(used).collect();
    if !mapped.is_empty() {
        fold(out, &format!("  read: {}", mapped.join(", ")), width, 4);
    }
    let labels: Vec<&str> = columns
        .iter()
        .filter(|column| column.quantity.is_none() && column.remark.is_none())
        .map(|column| column.column.as_str())
        .collect();
    if !labels.is_empty() {
        fold(out, &format!("  labels: {}", labels.join(", ")), width, 4);
    }
    // Many columns are unknown for one reason.
    let mut unused: Vec<(&str, Vec<&str>)> = Vec::new();
    for column in columns.iter().filter(|column| column.quantity.is_none()) {
        let Some(why) = column.remark.as_deref() else { continue };
        match unused.iter_mut().find(|(known, _)| *known == why) {
            Some((_, names)) => names.push(&column.column),
            None => unused.push((why, vec![&column.column])),
        }
    }
    let unused: Vec<String> =
        unused.iter().map(|(why, names)| format!("{} ({why})", names.join(", "))).collect();
    if !unused.is_empty() {
        fold(out, &format!("  not read, so not checked: {}", unused.join("; ")), width, 4);
    }
}

/// Folds a text at blanks; what comes from a file loses its control
/// characters, since a terminal would obey them.
fn fold(out: &mut String, text: &str, width: usize, indent: usize) {
    let text = text.replace(char::is_control, " ");
    let lead = text.len() - text.trim_start_matches(' ').len();
    let mut column = lead;
    let _ = write!(out, "{:lead$}", "");
    let mut is_first = true;
    for word in text.split_ascii_whitespace() {
        let length = word.chars().count();
        if !is_first && column + 1 + length > width {
            let _ = write!(out, "\n{:indent$}", "");
            column = indent;
        } else if !is_first {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
        is_first = false;
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    #[test]
    fn texts_fold_and_lose_control_characters() {
        let mut out = String::new();
        super::fold(&mut out, "  a bc\x1b[2J def", 9, 4);
        assert_eq!(out, "  a bc\n    [2J\n    def\n");
    }
}
