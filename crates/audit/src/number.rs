//! Numbers as people and tools of any locale write them.
//!
//! Decimals are separated by a point or a comma, digits grouped by threes or,
//! as in India, by twos before the last three, with points, commas, blanks,
//! apostrophes or underscores. Most numbers say by themselves which is which;
//! `1,234` does not, and is decided by what the others of the same text say.

use iolens_stats::physics::Rounded;

/// What separates decimals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DecimalMark {
    Point,
    Comma,
}

impl DecimalMark {
    fn sign(self) -> char {
        match self {
            DecimalMark::Point => '.',
            DecimalMark::Comma => ',',
        }
    }
}

/// A number at the beginning of a text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Number<'a> {
    pub(crate) value: f64,
    /// Half of what its last printed digit is worth.
    pub(crate) half_digit: f64,
    /// Whether it has neither decimals nor an exponent.
    pub(crate) is_whole: bool,
    /// What it says about decimals.
    pub(crate) mark: MarkEvidence,
    /// What follows it, without blanks around it.
    pub(crate) rest: &'a str,
}

/// What a number says about how decimals are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MarkEvidence {
    /// Nothing.
    None,
    /// This one.
    Says(DecimalMark),
    /// It can be read both ways.
    Ambiguous,
}

impl Number<'_> {
    /// With what printing may have rounded away.
    pub(crate) fn rounded(&self) -> Rounded {
        Rounded::printed(self.value, self.half_digit)
    }
}

/// Reads the number that a text begins with; `mark` decides only where the
/// number does not. `None` where the text begins with no number.
pub(crate) fn leading(text: &str, mark: DecimalMark) -> Option<Number<'_>> {
    let text = text.trim();
    let (sign, unsigned) = match text.chars().next()? {
        '-' | '−' => (-1.0, &text[text.chars().next()?.len_utf8()..]),
        '+' => (1.0, &text[1..]),
        _ => (1.0, text),
    };
    let body = &unsigned[..body_length(unsigned)];
    let exponent = exponent_length(&unsigned[body.len()..]);
    let (exponent_text, rest) = unsigned[body.len()..].split_at(exponent);
    let (plain, evidence) = normalise(body, mark, exponent > 0)?;
    let decimals = plain.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let value: f64 = format!("{plain}{exponent_text}").parse().ok()?;
    let power: i32 = exponent_text.get(1..).map_or(Some(0), |digits| digits.parse().ok())?;
    let last_digit = power.saturating_sub(i32::try_from(decimals).ok()?);
    let half_digit = 0.5 * 10f64.powi(last_digit);
    if !value.is_finite() || !half_digit.is_finite() {
        return None;
    }
    Some(Number {
        value: sign * value,
        half_digit,
        is_whole: decimals == 0 && exponent == 0,
        mark: evidence,
        rest: rest.trim(),
    })
}

/// Whether a sign can stand between groups of digits.
fn groups_only(c: char) -> bool {
    matches!(c, ' ' | '\u{a0}' | '\u{2009}' | '\u{202f}' | '\'' | '’' | '_')
}

/// Length of the digits and of what stands between them.
fn body_length(text: &str) -> usize {
    let mut end = 0;
    let mut rest = text;
    loop {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        end += digits;
        rest = &rest[digits..];
        let Some(sign) = rest.chars().next() else { return end };
        let after = &rest[sign.len_utf8()..];
        let follows = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        // A blank is a group only before exactly three digits: two numbers
        // may stand beside one another.
        let joins = match sign {
            '.' | ',' => follows > 0,
            sign if groups_only(sign) => follows == 3 && digits > 0,
            _ => false,
        };
        if !joins {
            return end;
        }
        end += sign.len_utf8();
        rest = after;
    }
}

/// Length of `e+6` and the like.
fn exponent_length(text: &str) -> usize {
    let mut chars = text.char_indices().peekable();
    if chars.next_if(|(_, c)| matches!(c, 'e' | 'E')).is_none() {
        return 0;
    }
    chars.next_if(|(_, c)| matches!(c, '+' | '-'));
    match chars.peek() {
        Some(&(start, c)) if c.is_ascii_digit() => {
            let digits = &text[start..];
            start + digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len())
        }
        _ => 0,
    }
}

/// Digits with a point for decimals, if the separators make sense.
fn normalise(body: &str, mark: DecimalMark, has_exponent: bool) -> Option<(String, MarkEvidence)> {
    if !body.contains(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let (decimal, evidence) = decimal_mark(body, mark, has_exponent)?;
    let (whole, decimals) = match decimal {
        Some(mark) => body.rsplit_once(mark.sign())?,
        None => (body, ""),
    };
    if !decimals.chars().all(|c| c.is_ascii_digit()) {
        return None;
    }
    let groups: Vec<&str> = whole.split(|c: char| !c.is_ascii_digit()).collect();
    if groups.len() > 1 && !are_groups(&groups) {
        return None;
    }
    let whole = groups.concat();
    let whole = if whole.is_empty() { "0" } else { &whole };
    let plain = match decimals {
        "" => whole.to_owned(),
        decimals => format!("{whole}.{decimals}"),
    };
    Some((plain, evidence))
}

/// What separates decimals in a number, `None` for nothing.
fn decimal_mark(
    body: &str,
    usual: DecimalMark,
    has_exponent: bool,
) -> Option<(Option<DecimalMark>, MarkEvidence)> {
    let count = |mark: DecimalMark| body.matches(mark.sign()).count();
    let says = |mark| Some((Some(mark), MarkEvidence::Says(mark)));
    let (only, other) = match (count(DecimalMark::Point), count(DecimalMark::Comma)) {
        (0, 0) => return Some((None, MarkEvidence::None)),
        (_, 0) => (DecimalMark::Point, DecimalMark::Comma),
        (0, _) => (DecimalMark::Comma, DecimalMark::Point),
        // Of two kinds the last one separates decimals, once.
        _ => {
            let comma_last = body.rfind(',') > body.rfind('.');
            let mark = if comma_last { DecimalMark::Comma } else { DecimalMark::Point };
            return if count(mark) == 1 { says(mark) } else { None };
        }
    };
    if count(only) > 1 {
        return Some((None, MarkEvidence::Says(other)));
    }
    let (whole, after) = body.split_once(only.sign())?;
    let is_group = after.len() == 3
        && (1..=3).contains(&whole.len())
        && !whole.starts_with('0')
        && !has_exponent
        && !whole.contains(groups_only);
    match is_group {
        false => says(only),
        true if only == usual => Some((Some(only), MarkEvidence::Ambiguous)),
        true => Some((None, MarkEvidence::Ambiguous)),
    }
}

/// Groups of three, or of two before a last group of three.
fn are_groups(groups: &[&str]) -> bool {
    let [first, between @ .., last] = groups else { return false };
    let all = |digits: usize| between.iter().all(|group| group.len() == digits);
    let western = (1..=3).contains(&first.len()) && all(3);
    let indian = (1..=2).contains(&first.len()) && all(2);
    last.len() == 3 && (western || indian)
}

/// How decimals are written in a text, from all its numbers; where none says
/// so, as is usual for it.
pub(crate) fn decimal_mark_of<'a>(
    cells: impl Iterator<Item = &'a str>,
    usual: DecimalMark,
) -> DecimalMark {
    let (mut points, mut commas) = (0usize, 0usize);
    for cell in cells {
        match leading(cell, usual).map(|number| number.mark) {
            Some(MarkEvidence::Says(DecimalMark::Point)) => points += 1,
            Some(MarkEvidence::Says(DecimalMark::Comma)) => commas += 1,
            _ => {}
        }
    }
    match points.cmp(&commas) {
        std::cmp::Ordering::Less => DecimalMark::Comma,
        std::cmp::Ordering::Greater => DecimalMark::Point,
        std::cmp::Ordering::Equal => usual,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expect: f64) {
        let number = leading(text, DecimalMark::Point);
        assert_eq!(number.map(|n| (n.value, n.rest)), Some((expect, "")), "{text}");
    }

    #[test]
    fn digit_groups_of_any_locale_are_read() {
        check("2,18,88,635", 21_888_635.0);
        check("1.234.567", 1_234_567.0);
        check("1 234 567", 1_234_567.0);
        check("1\u{202f}234\u{a0}567,25", 1_234_567.25);
        check("1'234'567", 1_234_567.0);
        check("12,345.5", 12345.5);
        check("12.345,5", 12345.5);
        check("12_345", 12345.0);
    }

    #[test]
    fn plain_and_scientific_numbers_are_read() {
        check("42", 42.0);
        check("-3.5", -3.5);
        check("0,131", 0.131);
        check("2.5e+06", 2.5e6);
        check("1E-3", 1e-3);
        check(".5", 0.5);
        check("21,14", 21.14);
    }

    #[test]
    fn one_mark_before_three_digits_is_read_as_usual() {
        let read = |text, mark| leading(text, mark).unwrap().value;
        assert_eq!(read("1,234", DecimalMark::Point), 1234.0);
        assert_eq!(read("1,234", DecimalMark::Comma), 1.234);
        assert_eq!(read("1.234", DecimalMark::Point), 1.234);
        assert_eq!(read("1.234", DecimalMark::Comma), 1234.0);
        let says = |cells: &[&str]| decimal_mark_of(cells.iter().copied(), DecimalMark::Point);
        assert_eq!(says(&["1,234", "3,5"]), DecimalMark::Comma);
        assert_eq!(says(&["1,234", "1,234,567"]), DecimalMark::Point);
        assert_eq!(says(&["1.234", "1.234.567"]), DecimalMark::Comma);
    }

    #[test]
    fn what_follows_is_left() {
        let rest = |text| leading(text, DecimalMark::Point).map(|n| (n.value, n.rest));
        assert_eq!(rest("64KiB"), Some((64.0, "KiB")));
        assert_eq!(rest("305      context-switches"), Some((305.0, "context-switches")));
        assert_eq!(rest("3 4"), Some((3.0, "4")));
        assert_eq!(rest("2 elapsed"), Some((2.0, "elapsed")));
        for none in ["", "-", "abc", "<not supported>", "1,2,3", "10.0.0.1", "1.2,3.4", "∞"] {
            assert_eq!(rest(none), None, "{none}");
        }
    }

    #[test]
    fn the_last_digit_is_known() {
        let half = |text| leading(text, DecimalMark::Point).unwrap().half_digit;
        assert!((half("0.131") - 0.0005).abs() < 1e-12);
        assert!((half("305") - 0.5).abs() < 1e-12);
        assert!((half("2.5e6") - 5e4).abs() < 1e-6);
    }

    proptest! {
        #[test]
        fn nothing_panics(text in "\\PC{0,24}") {
            let _ = leading(&text, DecimalMark::Point);
            let _ = leading(&text, DecimalMark::Comma);
        }

        #[test]
        fn number_like_texts_do_not_panic(text in "[-+0-9.,' _eE\u{202f}]{0,24}") {
            let _ = leading(&text, DecimalMark::Point);
        }

        #[test]
        fn grouped_numbers_read_back(n in 1000u64..1 << 50) {
            for sign in [',', '.', ' ', '\'', '\u{202f}'] {
                let mut grouped = String::new();
                let digits = n.to_string();
                for (i, digit) in digits.chars().enumerate() {
                    if i > 0 && (digits.len() - i).is_multiple_of(3) {
                        grouped.push(sign);
                    }
                    grouped.push(digit);
                }
                let usual = if sign == '.' { DecimalMark::Comma } else { DecimalMark::Point };
                prop_assert_eq!(leading(&grouped, usual).map(|n| n.value), Some(n as f64));
            }
        }
    }
}
