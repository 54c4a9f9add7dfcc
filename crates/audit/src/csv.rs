//! Separated values: which separator, and the records with the line each
//! begins on. Fields may be quoted; a quote inside of quotes is doubled.

/// One line of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    /// Its line in the file, from 1.
    pub(crate) line: usize,
    pub(crate) fields: Vec<String>,
}

/// The separator: of those that split the first records into as many fields
/// each, the one with the most.
pub(crate) fn separator(text: &str) -> char {
    const RECORDS_LOOKED_AT: usize = 8;
    let fields = |separator: char| {
        let records = records(text, separator, RECORDS_LOOKED_AT);
        let first = records.first().map_or(0, |record| record.fields.len());
        let agree = records.iter().filter(|record| record.fields.len() == first).count();
        // One that splits all records alike comes before one that does not.
        (first > 1, agree == records.len(), first)
    };
    let best = ['\t', ';', ','].into_iter().max_by_key(|separator| fields(*separator));
    best.unwrap_or(',')
}

/// All records but empty ones and those that begin with `#`, at most so many.
pub(crate) fn records(text: &str, separator: char, most: usize) -> Vec<Record> {
    let mut records = Vec::new();
    let mut chars = text.trim_start_matches('\u{feff}').chars().peekable();
    let mut line = 1;
    while chars.peek().is_some() && records.len() < most {
        let begin = line;
        let fields = record(&mut chars, separator, &mut line);
        let is_comment = fields.first().is_some_and(|field| field.trim_start().starts_with('#'));
        let is_empty = fields.iter().all(|field| field.trim().is_empty());
        if !is_comment && !is_empty {
            records.push(Record { line: begin, fields });
        }
    }
    records
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// Reads one record and the end of its line.
fn record(chars: &mut Chars<'_>, separator: char, line: &mut usize) -> Vec<String> {
    let mut fields = Vec::new();
    let mut field = String::new();
    let mut is_quoted = false;
    while let Some(c) = chars.next() {
        *line += usize::from(c == '\n');
        match c {
            '"' if is_quoted && chars.next_if_eq(&'"').is_some() => field.push('"'),
            '"' if is_quoted => is_quoted = false,
            '"' if field.trim().is_empty() => {
                field.clear();
                is_quoted = true;
            }
            c if is_quoted => field.push(c),
            '\n' => break,
            '\r' => {}
            c if c == separator => fields.push(std::mem::take(&mut field).trim().to_owned()),
            c => field.push(c),
        }
    }
    fields.push(field.trim().to_owned());
    fields
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fields(text: &str) -> Vec<Vec<String>> {
        let records = records(text, separator(text), usize::MAX);
        records.into_iter().map(|record| record.fields).collect()
    }

    #[test]
    fn separators_are_found() {
        assert_eq!(fields("a,b\n1,2\n"), [["a", "b"], ["1", "2"]]);
        assert_eq!(fields("a;b\n1,5;2,5\n"), [["a", "b"], ["1,5", "2,5"]]);
        assert_eq!(fields("a\tb, c\r\n1\t2\r\n"), [["a", "b, c"], ["1", "2"]]);
        assert_eq!(fields("a\n1\n"), [["a"], ["1"]]);
    }

    #[test]
    fn quotes_comments_and_empty_lines() {
        let text = "# made by hand\na,b\n\n\"1,234\",\"say \"\"x\"\"\"\n,\n";
        assert_eq!(fields(text), [["a", "b"], ["1,234", "say \"x\""]]);
        let lines: Vec<usize> = records(text, ',', usize::MAX).iter().map(|r| r.line).collect();
        assert_eq!(lines, [2, 4]);
        let folded = records("a,b\n\"x\ny\",2\n3,4", ',', usize::MAX);
        assert_eq!(folded[2].line, 4);
        assert_eq!(folded[1].fields[0], "x\ny");
    }

    proptest! {
        #[test]
        fn nothing_panics(text in "[\\PC\n\r\t\"]{0,80}") {
            let _ = records(&text, separator(&text), usize::MAX);
        }

        #[test]
        fn quoted_fields_read_back(fields in proptest::collection::vec("[ -~]{1,8}", 2..5)) {
            let quoted: Vec<String> =
                fields.iter().map(|f| format!("\"{}\"", f.replace('"', "\"\""))).collect();
            let read = records(&format!("h\n{}", quoted.join(",")), ',', usize::MAX);
            let trimmed: Vec<&str> = fields.iter().map(|f| f.trim()).collect();
            if trimmed.iter().any(|f| !f.is_empty()) && !trimmed[0].starts_with('#') {
                prop_assert_eq!(&read[1].fields, &trimmed);
            }
        }
    }
}
