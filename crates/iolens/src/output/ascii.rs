//! Text for a terminal that shows ASCII and nothing else.

/// What stands for the letters that iolens writes. Every other one becomes `?`.
const LETTERS: [(char, &str); 51] = [
    ('─', "-"),
    ('×', "x"),
    ('→', "->"),
    ('µ', "u"),
    ('μ', "u"),
    ('δ', "delta"),
    ('–', "-"),
    ('±', "+-"),
    ('·', ";"),
    ('−', "-"),
    ('…', "..."),
    ('½', "1/2"),
    ('√', "sqrt"),
    ('’', "'"),
    ('‘', "'"),
    ('“', "\""),
    ('”', "\""),
    ('Σ', "sum"),
    ('σ', "sigma"),
    ('ρ', "rho"),
    ('λ', "lambda"),
    ('ν', "nu"),
    ('π', "pi"),
    ('≤', "<="),
    ('≥', ">="),
    ('≈', "~"),
    ('∞', "inf"),
    ('✓', "+"),
    ('✗', "X"),
    ('›', ">"),
    ('●', "*"),
    ('◆', "*"),
    ('▲', "^"),
    ('▼', "v"),
    ('■', "#"),
    ('█', "#"),
    ('░', "."),
    ('é', "e"),
    ('ü', "u"),
    ('ö', "o"),
    ('ß', "ss"),
    ('\u{a0}', " "),
    ('⁰', "^0"),
    ('¹', "^1"),
    ('²', "^2"),
    ('³', "^3"),
    ('⁴', "^4"),
    ('⁵', "^5"),
    ('⁶', "^6"),
    ('⁷', "^7"),
    ('⁸', "^8"),
];

/// The text in ASCII. What is longer than the letter it stands for takes its room from the
/// blanks behind it, where there are two or more: columns stay below each other.
pub(super) fn written(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    // Columns by which what was written is ahead.
    let mut ahead = 0;
    while let Some(letter) = letters.next() {
        match letter {
            '\n' => ahead = 0,
            ' ' if ahead > 0 && letters.peek() == Some(&' ') => {
                ahead -= 1;
                continue;
            }
            _ => {}
        }
        if letter.is_ascii() {
            out.push(letter);
            continue;
        }
        if letter == '·' && out.ends_with(' ') {
            // A separator stands by what it ends.
            out.pop();
        }
        let known = LETTERS.iter().find(|(known, _)| *known == letter);
        let stands_for_it = known.map_or("?", |(_, words)| words);
        ahead += stands_for_it.len() - 1;
        out.push_str(stands_for_it);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_become_what_is_read_for_them() {
        let check = |text: &str, expect: &str| assert_eq!(written(text), expect);
        check("1.14× (1.12–1.16) ± 3 µs · δ", "1.14x (1.12-1.16) +- 3 us; delta");
        check("日", "?");
        check("plain", "plain");
    }

    #[test]
    fn columns_stay_below_each_other() {
        let table = "a → b     1\n±2%…      2\nplain     3\n";
        let columns: Vec<Option<usize>> =
            written(table).lines().map(|line| line.rfind(['1', '2', '3'])).collect();
        assert_eq!(columns, [Some(10), Some(10), Some(10)], "{}", written(table));
    }

    #[test]
    fn every_letter_is_written_in_ascii() {
        for (letter, words) in LETTERS {
            assert!(!letter.is_ascii() && words.is_ascii() && !words.is_empty(), "{letter}");
        }
    }
}
