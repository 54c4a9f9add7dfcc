//! Plan files: TOML whose keys are the flags of a study, with `_` for `-`, and whose values are
//! what the flags take, lists also as arrays. Each value goes through its flag's own parser, so
//! the two cannot differ. A mistake is answered with file, line and column, and the line is
//! shown.

pub(crate) mod ab;

use std::fmt::Write;
use std::ops::Range;

use iolens_model::axes::Study;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::axes::{self, AXES, Axis, Kind, Place, Wishes};
use crate::values::{one, unknown};

/// The key that says what is studied; on the command line it is no flag.
const STUDY: &str = "study";

/// Something in a file, and where it stands.
#[derive(Debug, PartialEq, Eq)]
struct Mistake {
    span: Range<usize>,
    message: String,
}

/// Whether there is such an id under a field in a study, or why not.
pub(crate) type Check<'a> = &'a dyn Fn(Study, &str, &str) -> Result<(), String>;

/// Reads a plan. `file` is its name in messages; `check` judges the ids of
/// primitives and receivers: they depend on the build and not on the form of a
/// file.
///
/// Errors: `file:line:column:`, what is wrong, and the nearest thing that
/// would be right; then the line with a mark below it.
pub(crate) fn parse(file: &str, text: &str, check: Check<'_>) -> Result<Wishes, String> {
    read(text, check).map_err(|mistake| told(file, text, mistake))
}

fn told(file: &str, text: &str, Mistake { span, message }: Mistake) -> String {
    let (line, column) = place(text, span.start);
    format!("{file}:{line}:{column}: {message}\n{}", excerpt(text, &span))
}

/// The line where a part of a text begins, and a mark below the part, as compilers show
/// one:
/// ```text
///   3 | size = 4
///     | ^^^^
/// ```
fn excerpt(text: &str, part: &Range<usize>) -> String {
    /// Of a longer line, what is around the part.
    const COLUMNS_MAX: usize = 80;
    let (line, column) = place(text, part.start);
    let (last_line, end) = place(text, part.end);
    // A file may hold what a terminal takes for a command.
    let printable = |letter: char| if letter.is_control() { ' ' } else { letter };
    let whole = text.lines().nth(line - 1).unwrap_or_default();
    let letters: Vec<char> = whole.chars().map(printable).collect();
    let left_out = match letters.len() > COLUMNS_MAX {
        true => (column - 1).saturating_sub(COLUMNS_MAX / 2),
        false => 0,
    };
    let shown: String = letters.iter().skip(left_out).take(COLUMNS_MAX).collect();
    let end = if last_line == line { end } else { letters.len() + 1 };
    let indent = column - 1 - left_out;
    let marks = end.saturating_sub(column).clamp(1, (COLUMNS_MAX - indent).max(1));
    let (number, gutter) = (line.to_string(), " ".repeat(line.to_string().len()));
    let (indent, marks) = (" ".repeat(indent), "^".repeat(marks));
    format!("  {number} | {}\n  {gutter} | {indent}{marks}", shown.trim_end())
}

/// Line and column of a byte, both from 1; columns count characters.
fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

fn read(text: &str, check: Check<'_>) -> Result<Wishes, Mistake> {
    let document = DeTable::parse(text)
        .map_err(|e| Mistake { span: e.span().unwrap_or(0..0), message: e.message().to_owned() })?;
    let mut entries: Vec<_> = document.get_ref().iter().collect();
    if entries.is_empty() {
        let message = format!("there is no key in it: begin with `{STUDY} = \"net\"`");
        return Err(Mistake { span: 0..0, message });
    }
    entries.sort_by_key(|(key, _)| key.span().start);
    let stated = entries.iter().find(|(key, _)| key.get_ref() == STUDY);
    let stated = stated.map(|(_, value)| study(value)).transpose()?;
    let study = stated.unwrap_or(Study::Net);
    let mut wishes = Wishes { study: stated, ..Wishes::default() };
    let mut before: Vec<(&Axis, &str)> = Vec::new();
    for (key, value) in entries.into_iter().filter(|(key, _)| key.get_ref() != STUDY) {
        let mistake = |message| Mistake { span: key.span(), message };
        let axis = axis(study, key.get_ref()).map_err(mistake)?;
        if take(axis, key.get_ref(), value, &mut wishes, &|id| check(study, axis.field, id))? {
            if let Some((_, other)) = before.iter().find(|(other, _)| axis.excludes(other)) {
                return Err(mistake(format!(
                    "`{other}` and `{}` cannot be used together: leave one out",
                    key.get_ref()
                )));
            }
            before.push((axis, key.get_ref()));
        }
    }
    Ok(wishes)
}

/// Every key of a study as it is written in a file.
fn keys(study: Study) -> Vec<String> {
    let keys = AXES.iter().filter_map(|axis| axis.key(study));
    std::iter::once(STUDY.to_owned()).chain(keys).collect()
}

/// The entry of a key, or what to write instead.
fn axis(study: Study, key: &str) -> Result<&'static Axis, String> {
    if let Some(axis) = AXES.iter().find(|axis| axis.key(study).is_some_and(|own| own == key)) {
        return Ok(axis);
    }
    let flag = key.replace('_', "-");
    if AXES.iter().any(|axis| axis.place == Place::Run && axis.flag(study) == Some(&*flag)) {
        return Err(format!("`{key}` is not a key of a plan: give it as the flag --{flag}"));
    }
    let as_key = |flag: &str| format!("`{}`", flag.replace('-', "_"));
    Err(axes::elsewhere(study, &flag, as_key).unwrap_or_else(|| {
        let keys = keys(study);
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        unknown("key", key, &keys, &format!("the keys are: {}", keys.join(", ")))
    }))
}

fn study(value: &Spanned<DeValue<'_>>) -> Result<Study, Mistake> {
    let mistake = |message| Mistake { span: value.span(), message };
    let Some(word) = value.get_ref().as_str() else {
        return Err(mistake("`study` must be a word in quotes, like \"net\"".to_owned()));
    };
    one(word).map_err(mistake)
}

/// Takes the value of a key; returns whether it states anything, which a switch that is off does
/// not.
fn take(
    axis: &Axis,
    key: &str,
    value: &Spanned<DeValue<'_>>,
    wishes: &mut Wishes,
    check: &dyn Fn(&str) -> Result<(), String>,
) -> Result<bool, Mistake> {
    let whole = |message| Mistake { span: value.span(), message };
    if axis.kind() == Kind::Switch {
        let on = value.get_ref().as_bool();
        let on = on.ok_or_else(|| whole(format!("`{key}` must be true or false")))?;
        return match on {
            true => (axis.set)(wishes, "").map(|()| true).map_err(whole),
            false => Ok(false),
        };
    }
    let items = items(key, value)?;
    for (text, span) in &items {
        let mistake = |message: String| Mistake { span: span.clone(), message };
        (axis.set)(&mut Wishes::default(), text).map_err(|why| mistake(format!("{key}: {why}")))?;
        if matches!(axis.field, "methods" | "baseline" | "receivers") {
            text.split(',').try_for_each(|id| check(id.trim())).map_err(mistake)?;
        }
    }
    let texts: Vec<String> = items.into_iter().map(|(text, _)| text).collect();
    let texts = if axis.kind() == Kind::Repeated { texts } else { vec![texts.join(",")] };
    for text in texts {
        (axis.set)(wishes, &text).map_err(|why| whole(format!("{key}: {why}")))?;
    }
    Ok(true)
}

/// The values of a key as a flag would take them, and where each stands.
fn items(key: &str, value: &Spanned<DeValue<'_>>) -> Result<Vec<(String, Range<usize>)>, Mistake> {
    let one = |value: &Spanned<DeValue<'_>>| match value.get_ref() {
        DeValue::String(text) => Ok((text.to_string(), value.span())),
        DeValue::Integer(number) if number.radix() == 10 => {
            Ok((number.as_str().to_owned(), value.span()))
        }
        DeValue::Float(number) => Ok((number.as_str().to_owned(), value.span())),
        other => Err(Mistake {
            span: value.span(),
            message: format!(
                "`{key}` cannot be a {}: write what the flag --{} takes, in quotes",
                kind(other),
                key.replace('_', "-")
            ),
        }),
    };
    match value.get_ref() {
        DeValue::Array(items) => items.iter().map(one).collect(),
        _ => one(value).map(|item| vec![item]),
    }
}

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::Boolean(_) => "truth value",
        DeValue::Integer(_) => "number that is not decimal",
        DeValue::Datetime(_) => "date",
        DeValue::Array(_) => "list in a list",
        DeValue::Table(_) => "table",
        DeValue::String(_) | DeValue::Float(_) => "value of this kind",
    }
}

/// A plan file that says these wishes and nothing else.
pub(crate) fn write(wishes: &Wishes) -> String {
    let mut text =
        wishes.study.map_or_else(String::new, |study| format!("{STUDY} = \"{study}\"\n"));
    for (key, value) in wishes.stated() {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{key} = {value}");
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use toml::Value;

    use super::*;

    fn any(_: Study, _: &str, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn read(text: &str) -> Result<Wishes, String> {
        parse("x.toml", text, &any)
    }

    #[test]
    fn lists_are_arrays_or_what_a_flag_takes() {
        let array = read("sizes = [256, \"1KiB\"]\nthreads = [1, 2]\nthreshold = 0.03").unwrap();
        let text = read("sizes = \"256,1KiB\"\nthreads = \"1,2\"\nthreshold = \"3%\"").unwrap();
        assert_eq!(array, text);
        assert_eq!(read("quick = false").unwrap(), Wishes::default());
    }

    #[test]
    fn mistakes_name_their_place_and_the_nearest_word() {
        let check = |text: &str, expect: &str| {
            let message = read(text).unwrap_err();
            assert!(message.starts_with(expect), "{message}");
        };
        check("\n\nsize = 4", "x.toml:3:1: unknown key `size`, did you mean `sizes`?");
        check("weather = 1", "x.toml:1:1: unknown key `weather`; the keys are: study, methods,");
        check("sizes = [64,\n  \"64kB\"]", "x.toml:2:3: sizes: `64kB` is not a size");
        check(
            "# é\nmode = \"é, stream\"",
            "x.toml:2:8: mode: unknown mode `é`; choose from: stream",
        );
        check("network=['vet']", "x.toml:1:10: network: unknown network `vet`, did you mean");
        check("", "x.toml:1:1: there is no key in it: begin with `study = \"net\"`");
        check("# later", "x.toml:1:1: there is no key in it");
        check("quick = 1", "x.toml:1:9: `quick` must be true or false");
        check("sizes = []", "x.toml:1:9: sizes: an empty list");
        check("[passes]\nmin = 3", "x.toml:1:1: `passes` cannot be a table");
        check("budget = 1979-05-27", "x.toml:1:10: `budget` cannot be a date");
        check("budget = [[1]]", "x.toml:1:11: `budget` cannot be a list in a list");
        check("study = \"nut\"", "x.toml:1:9: unknown study `nut`, did you mean `net`?");
        check("sizes = 1\nsizes = 2", "x.toml:2:1: duplicate key");
        check("sizes = ", "x.toml:1:9: ");
    }

    #[test]
    fn keys_that_exclude_each_other_are_named() {
        let message = read("sequential_time = \"1s\"\nsequential_messages = 5").unwrap_err();
        assert!(message.starts_with("x.toml:2:1: `sequential_time` and `sequential"), "{message}");
        assert!(read("isolate = false\nsequential_messages = 5").is_ok());
    }

    #[test]
    fn keys_of_another_study_and_old_ones_are_answered() {
        let check = |text: &str, expect: &str| {
            let message = read(text).unwrap_err();
            assert!(message.starts_with(expect), "{message}");
        };
        check(
            "connections = 5",
            "x.toml:1:1: run net has no `connections`; it belongs to run server",
        );
        check("engines = \"read\"", "x.toml:1:1: `engines` is `methods` in run net");
        check("primitives = \"send\"", "x.toml:1:1: `primitives` is now `methods`");
        check("study = \"copy\"\nsizes = 1", "x.toml:2:1: `sizes` is now `file_sizes`");
        check(
            "evict = true",
            "x.toml:1:1: run net has no `evict`; it belongs to run file and copy",
        );
        check("iovec = \"prepared\"", "x.toml:1:9: iovec: `prepared` is now `prebuilt`");
        check("network = \"host\"", "x.toml:1:11: network: `host` is now `peer`");
        check(
            "dry_run = true",
            "x.toml:1:1: `dry_run` is not a key of a plan: give it as the flag",
        );
    }

    #[test]
    fn a_method_that_does_not_exist_is_found_where_it_stands() {
        let none = |_: Study, _: &str, id: &str| Err(format!("unknown method `{id}`"));
        let message = parse("x.toml", "methods = [\n \"sendd\"]", &none).unwrap_err();
        let shown = "  2 |  \"sendd\"]\n    |  ^^^^^^^";
        assert_eq!(message, format!("x.toml:2:2: unknown method `sendd`\n{shown}"));
    }

    #[test]
    fn a_mistake_is_shown_where_it_stands() {
        let check = |text: &str, shown: &str| {
            let message = read(text).unwrap_err();
            assert_eq!(message.split_once('\n').unwrap().1, shown, "{text:?}");
        };
        check("\nsize = 4 # é", "  2 | size = 4 # é\n    | ^^^^");
        check("mode = \"é, stream\"", "  1 | mode = \"é, stream\"\n    |        ^^^^^^^^^^^");
        check("\tsize\t= \"\u{1b}\"\r\n", "  1 |  size = \" \"\n    |          ^");
        check("sizes = [1,\n[2]]", "  2 | [2]]\n    | ^^^");
        check("quick = \"\"\"\nyes\"\"\"", "  1 | quick = \"\"\"\n    |         ^^^");
        // At the end of the text there is nothing to mark, and it is marked.
        check("sizes = ", "  1 | sizes =\n    |         ^");
        let long = format!("# {}\nsizes = [{}0]", "x".repeat(200), "1, ".repeat(100));
        let message = read(&long).unwrap_err();
        assert!(message.lines().skip(1).all(|line| line.chars().count() <= 90), "{message}");
        assert!(message.contains(", 0]\n"), "{message}");
    }

    /// A value that is not the default, for each key that a word is not one of.
    fn value(field: &str) -> &'static str {
        match field {
            "name" => "\"it's \\\"x\\\"\"",
            "sizes" => "\"1000,64KiB\"",
            "threads" | "uring_batch" | "uring_depth" | "fields" | "queue_depth" => "[1, 2]",
            "connections" => "[1, 10000]",
            "network" => "\"auto,veth\"",
            "mode" => "\"stream,rr\"",
            "send_memory" => "\"hot,cold\"",
            "iovec" => "\"prebuilt\"",
            "reap_batch" => "[\"needed\", 8]",
            "busy_poll_us" => "[\"off\", 50]",
            "ring_flags" => "[\"none\", \"sqpoll+single_issuer\"]",
            "budget" | "step_time" | "sequential_time" => "\"90s\"",
            "slice" => "\"1.5ms\"",
            "precision" => "\"2.5%\"",
            "threshold" => "0.0333333333333",
            "passes" => "\"3..9\"",
            "cpus" | "server_cpus" | "client_cpus" => "\"1,0\"",
            "ip" => "\"ipv6\"",
            "local_end" => "\"rx\"",
            "socket_buffer_bytes" | "receive_size_bytes" | "block_size" | "file_size" => "\"4KiB\"",
            "counters" => "\"alternate\"",
            "bursts" => "[\"full\", 10]",
            "cache" => "\"warm,cold\"",
            "pattern" => "\"random\"",
            "consumer" => "[\"none\", \"hash\"]",
            "drop_caches" => "[1, \"3\"]",
            "target" => "\"new\"",
            "sync" => "\"none,fsync\"",
            "external" => "[\"mine='a,b' {src} {dst} {port}\"]",
            "service" => "\"echo,payload:64\"",
            "keep_alive" => "\"no,yes\"",
            "load" => "\"closed,50%\"",
            "arrivals" => "\"fixed\"",
            "slo" => "[\"p99<2ms\", \"p50<1500us\"]",
            "seed" => "\"18446744073709551615\"",
            "methods" | "baseline" | "receivers" | "congestion" | "dir" | "file" => "\"a b\"",
            "mtu_bytes" => "1500",
            _ => "7",
        }
    }

    #[test]
    fn every_key_of_every_study_can_be_written() {
        for &study in Study::OF_RUN {
            for axis in AXES {
                let Some(key) = axis.key(study) else { continue };
                let value = if axis.kind() == Kind::Switch { "true" } else { value(axis.field) };
                let wishes = read(&format!("study = \"{study}\"\n{key} = {value}")).unwrap();
                let text = write(&wishes);
                assert!(text.contains(&format!("\n{key} = ")), "{text}");
                assert_eq!(read(&text), Ok(wishes));
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn no_text_makes_the_parser_panic(text in "(?s).{0,80}") {
            let _ = read(&text);
        }

        #[test]
        fn no_value_makes_a_key_panic(
            key in proptest::sample::select(keys(Study::Net)),
            value in "([0-9a-zA-Z\"'\\[\\]{},.%_=\\- é\n]{0,24})",
        ) {
            let _ = read(&format!("{key} = {value}"));
            let quoted = Value::String(value);
            if let Ok(wishes) = read(&format!("{key} = {quoted}")) {
                prop_assert_eq!(read(&write(&wishes)), Ok(wishes));
            }
        }
    }
}
