//! Plan files: TOML whose keys are the long flags of [`Wishes`], with `_` for
//! `-`, and whose values are what the flags take, lists also as arrays. Each
//! value goes through its flag's own parser, so the two cannot differ. A
//! mistake is answered with file, line and column, and the line is shown.

use std::fmt::Write;
use std::ops::Range;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, Args, Command, FromArgMatches};
use iolens_model::axes::Study;
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Value};

use crate::values::{self, unknown};
use crate::wishes::Wishes;

/// The key that says what is studied; on the command line it is no flag.
const STUDY: &str = "study";

/// Something in a file, and where it stands.
#[derive(Debug, PartialEq, Eq)]
struct Mistake {
    span: Range<usize>,
    message: String,
}

/// A key with its value as the flag that it is.
struct Flag {
    /// `--sizes=64,1KiB`.
    argument: String,
    /// Where the key stands.
    span: Range<usize>,
}

/// Whether there is such an id under a key in a study, or why not.
pub(crate) type Check<'a> = &'a dyn Fn(Study, &str, &str) -> Result<(), String>;

/// Reads a plan. `file` is its name in messages; `check` judges the ids of
/// primitives and receivers: they depend on the build and not on the form of a
/// file.
///
/// Errors: `file:line:column:`, what is wrong, and the nearest thing that
/// would be right; then the line with a mark below it.
pub(crate) fn parse(file: &str, text: &str, check: Check<'_>) -> Result<Wishes, String> {
    read(text, check).map_err(|Mistake { span, message }| {
        let (line, column) = place(text, span.start);
        format!("{file}:{line}:{column}: {message}\n{}", excerpt(text, &span))
    })
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
    let table = table();
    let mut entries: Vec<_> = document.get_ref().iter().collect();
    if entries.is_empty() {
        let message = format!("there is no key in it: begin with `{STUDY} = \"net\"`");
        return Err(Mistake { span: 0..0, message });
    }
    entries.sort_by_key(|(key, _)| key.span().start);
    let stated = entries.iter().find(|(key, _)| key.get_ref() == STUDY);
    let study = stated.map(|(_, value)| study(value)).transpose()?;
    let check = |key: &str, id: &str| check(study.unwrap_or(Study::Net), key, id);
    let mut flags = Vec::new();
    for (key, value) in entries.into_iter().filter(|(key, _)| key.get_ref() != STUDY) {
        flags.extend(flag(&table, key.get_ref(), key.span(), value, &check)?);
    }
    Ok(Wishes { study, ..together(&table, &flags)? })
}

/// The flags that are keys.
fn table() -> Command {
    let command = Command::new("plan").no_binary_name(true).disable_help_flag(true);
    Wishes::augment_args(command)
}

/// Every key as it is written in a file.
fn keys(table: &Command) -> Vec<String> {
    let mut keys = vec![STUDY.to_owned()];
    keys.extend(table.get_arguments().filter_map(Arg::get_long).map(|flag| flag.replace('-', "_")));
    keys
}

fn study(value: &Spanned<DeValue<'_>>) -> Result<Study, Mistake> {
    let mistake = |message| Mistake { span: value.span(), message };
    let Some(word) = value.get_ref().as_str() else {
        return Err(mistake("`study` must be a word in quotes, like \"net\"".to_owned()));
    };
    let words: Vec<&str> = Study::ALL.iter().map(|study| study.word()).collect();
    Study::from_word(word).ok_or_else(|| {
        let advice = format!("there is: {}", words.join(", "));
        mistake(unknown("study", word, &words, &advice))
    })
}

/// A key and its value as a flag; none for a switch that is off, and one for each item
/// of a flag that may be repeated.
fn flag(
    table: &Command,
    key: &str,
    span: Range<usize>,
    value: &Spanned<DeValue<'_>>,
    check: &dyn Fn(&str, &str) -> Result<(), String>,
) -> Result<Vec<Flag>, Mistake> {
    let dashed = key.replace('_', "-");
    let is_it = |arg: &&Arg| {
        let aliases = arg.get_all_aliases().unwrap_or_default();
        !key.contains('-') && (arg.get_long() == Some(&dashed) || aliases.contains(&&*dashed))
    };
    let Some(arg) = table.get_arguments().find(is_it) else {
        let keys = keys(table);
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let advice = format!("the keys are: {}", keys.join(", "));
        return Err(Mistake { span, message: unknown("key", key, &keys, &advice) });
    };
    if matches!(arg.get_action(), ArgAction::SetTrue) {
        let mistake =
            || Mistake { span: value.span(), message: format!("`{key}` must be true or false") };
        let on = value.get_ref().as_bool().ok_or_else(mistake)?;
        return Ok(on
            .then(|| Flag { argument: format!("--{dashed}"), span })
            .into_iter()
            .collect());
    }
    let items = items(key, value)?;
    for (text, span) in &items {
        let mistake = |message: String| Mistake { span: span.clone(), message };
        alone(table, &dashed, text).map_err(|why| mistake(format!("{key}: {why}")))?;
        if matches!(key, "primitives" | "baseline" | "receivers") {
            text.split(',').try_for_each(|id| check(key, id.trim())).map_err(mistake)?;
        }
    }
    if matches!(arg.get_action(), ArgAction::Append) {
        let one = |(text, span)| Flag { argument: format!("--{dashed}={text}"), span };
        return Ok(items.into_iter().map(one).collect());
    }
    let texts: Vec<&str> = items.iter().map(|(text, _)| text.as_str()).collect();
    let argument = format!("--{dashed}={}", texts.join(","));
    alone(table, &dashed, &texts.join(","))
        .map_err(|why| Mistake { span: value.span(), message: format!("{key}: {why}") })?;
    Ok(vec![Flag { argument, span }])
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

/// Gives one value to its flag's parser.
fn alone(table: &Command, flag: &str, text: &str) -> Result<(), String> {
    let argument = format!("--{flag}={text}");
    match table.clone().try_get_matches_from([argument]) {
        Ok(_) => Ok(()),
        Err(error) => Err(match std::error::Error::source(&error) {
            Some(why) => why.to_string(),
            None => format!("`{text}` is not a value of it"),
        }),
    }
}

/// All flags of a file at once: which may not stand together is known then.
fn together(table: &Command, flags: &[Flag]) -> Result<Wishes, Mistake> {
    let arguments = flags.iter().map(|flag| &flag.argument);
    let matches = table.clone().try_get_matches_from(arguments).map_err(|e| conflict(&e, flags))?;
    Wishes::from_arg_matches(&matches).map_err(|e| conflict(&e, flags))
}

/// Two keys that exclude each other, at the place of the later one.
fn conflict(error: &clap::Error, flags: &[Flag]) -> Mistake {
    let key = |kind| match error.get(kind) {
        Some(ContextValue::String(usage)) => Some(usage.as_str()),
        Some(ContextValue::Strings(usages)) => usages.first().map(String::as_str),
        _ => None,
    };
    let name = |usage: &str| {
        let flag = usage.split([' ', '=', '[']).next().unwrap_or_default();
        flag.trim_start_matches('-').replace('-', "_")
    };
    let found = |name: &String| {
        let flag = |flag: &&Flag| {
            let key = flag.argument.split('=').next().unwrap_or_default();
            key.trim_start_matches('-').replace('-', "_") == *name
        };
        flags.iter().rfind(flag).map(|flag| flag.span.clone())
    };
    let names: Vec<String> = [ContextKind::InvalidArg, ContextKind::PriorArg]
        .into_iter()
        .filter_map(key)
        .map(name)
        .collect();
    let span = names.iter().filter_map(found).max_by_key(|span| span.start).unwrap_or(0..0);
    let message = match (error.kind(), &names[..]) {
        (ErrorKind::ArgumentConflict, [first, second]) if first == second => {
            format!("`{first}` is stated twice")
        }
        (ErrorKind::ArgumentConflict, [first, second]) => {
            format!("`{first}` and `{second}` cannot stand together: leave one out")
        }
        _ => error.kind().to_string(),
    };
    Mistake { span, message }
}

/// A plan file that says these wishes and nothing else.
pub(crate) fn write(wishes: &Wishes) -> String {
    let mut text =
        wishes.study.map_or_else(String::new, |study| format!("{STUDY} = \"{study}\"\n"));
    for (key, value) in stated(wishes) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{key} = {value}");
    }
    text
}

/// What is stated, key by key, in the order of the flags.
pub(crate) fn stated(wishes: &Wishes) -> Vec<(&'static str, toml::Value)> {
    use toml::Value::{Array, Boolean, Integer, String as Text};

    fn several<T>(values: &[T], one: impl Fn(&T) -> Value) -> Option<Value> {
        (!values.is_empty()).then(|| Array(values.iter().map(one).collect()))
    }
    let switch = |on: bool| on.then_some(Boolean(true));
    // TOML's integers have a sign; the largest seeds and counts do not fit.
    let large = |n: u64| i64::try_from(n).map_or_else(|_| Text(n.to_string()), Integer);
    let w = wishes;
    let rows = [
        ("name", w.name.as_deref().map(text)),
        ("quick", switch(w.quick)),
        ("primitives", list(&w.primitives, |id| text(id))),
        ("baseline", w.baseline.as_deref().map(text)),
        ("sizes", list(&w.sizes, |&size| Text(values::written_size(size)))),
        ("threads", list(&w.threads, |&n| number(n))),
        ("topologies", list(&w.topologies, |stand| text(stand.word()))),
        ("modes", list(&w.modes, |mode| text(mode.word()))),
        ("working_set", list(&w.working_set, |set| text(set.word()))),
        ("receivers", list(&w.receivers, |id| text(id))),
        ("fields", list(&w.fields, |&n| number(n))),
        ("iovec", list(&w.iovec, |iovec| text(iovec.word()))),
        ("reap_batch", list(&w.reap_batch, |&batch| Text(values::written_reap_batch(batch)))),
        ("uring_batch", list(&w.uring_batch, |&n| number(n))),
        ("uring_depth", list(&w.uring_depth, |&n| number(n))),
        ("in_a_row", list(&w.in_a_row, |&calls| Text(values::written_in_a_row(calls)))),
        ("cache", list(&w.cache, |cache| text(cache.word()))),
        ("destination", list(&w.destination, |destination| text(destination.word()))),
        ("pattern", list(&w.pattern, |pattern| text(pattern.word()))),
        ("consumer", list(&w.consumer, |consumer| text(consumer.word()))),
        ("depth", list(&w.depth, |&n| number(n))),
        ("file", w.file.as_deref().map(text)),
        ("dir", w.dir.as_deref().map(text)),
        ("file_bytes", w.file_bytes.map(|size| Text(values::written_size(size)))),
        ("evict", switch(w.evict)),
        ("drop_caches", list(&w.drop_caches, |mode| text(mode.word()))),
        ("block", list(&w.block, |&size| Text(values::written_size(size)))),
        ("sync", list(&w.sync, |sync| text(sync.word()))),
        ("external", several(&w.external, |one| Text(values::written_external(one)))),
        ("budget", w.budget.map(|span| Text(values::written_span(span)))),
        ("precision", w.precision.map(|x| Text(values::written_fraction(x)))),
        ("delta", w.delta.map(|x| Text(values::written_fraction(x)))),
        ("passes", w.passes.map(|passes| Text(values::written_passes(passes)))),
        ("slice", w.slice.map(|span| Text(values::written_span(span)))),
        ("rounds", w.rounds.map(number)),
        ("window", w.window.map(|span| Text(values::written_span(span)))),
        ("messages", w.messages.map(large)),
        ("isolate", switch(w.isolate)),
        ("cpus", list(&w.cpus, |&cpu| number(cpu))),
        ("ip", list(&w.ip, |ip| text(ip.word()))),
        ("mtu", list(&w.mtu, |&n| number(n))),
        ("direction", w.direction.map(|end| text(end.word()))),
        ("congestion", w.congestion.as_deref().map(text)),
        ("socket_buffer", list(&w.socket_buffer, |&size| Text(values::written_size(size)))),
        ("receive_size", list(&w.receive_size, |&size| Text(values::written_size(size)))),
        ("counters", w.counters.map(|when| text(when.word()))),
        ("software_events", switch(w.software_events)),
        ("tracepoints", switch(w.tracepoints)),
        ("allow_sysctl", switch(w.allow_sysctl)),
        ("seed", w.seed.map(large)),
    ];
    let rows = rows.into_iter().chain(of_servers(w));
    rows.filter_map(|(key, value)| Some((key, value?))).collect()
}

/// The same of the keys that only plans of servers have.
fn of_servers(w: &Wishes) -> [(&'static str, Option<Value>); 13] {
    let span = |span| Value::String(values::written_span(span));
    [
        ("services", list(&w.services, |service| text(service))),
        ("connections", list(&w.connections, |&n| number(n))),
        ("length", list(&w.length, |length| text(length.word()))),
        ("load", list(&w.load, |load| Value::String(load.to_string()))),
        ("arrivals", w.arrivals.map(|arrivals| text(arrivals.word()))),
        ("in_flight", w.in_flight.map(number)),
        ("slo", list(&w.slo, |slo| Value::String(slo.to_string()))),
        ("knee", w.knee.then_some(Value::Boolean(true))),
        ("phase", w.phase.map(span)),
        ("server_cpus", list(&w.server_cpus, |&cpu| number(cpu))),
        ("client_cpus", list(&w.client_cpus, |&cpu| number(cpu))),
        ("client_threads", w.client_threads.map(number)),
        ("backlog", w.backlog.map(number)),
    ]
}

fn list<T>(values: &Option<values::List<T>>, one: impl Fn(&T) -> Value) -> Option<Value> {
    values.as_ref().map(|list| Value::Array(list.0.iter().map(one).collect()))
}

fn text(text: &str) -> Value {
    Value::String(text.to_owned())
}

fn number(n: u32) -> Value {
    Value::Integer(i64::from(n))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any(_: Study, _: &str, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn read(text: &str) -> Result<Wishes, String> {
        parse("x.toml", text, &any)
    }

    #[test]
    fn lists_are_arrays_or_what_a_flag_takes() {
        let array = read("sizes = [256, \"1KiB\"]\nthreads = [1, 2]\ndelta = 0.03").unwrap();
        let text = read("sizes = \"256,1KiB\"\nthreads = \"1,2\"\ndelta = \"3%\"").unwrap();
        assert_eq!(array, text);
        assert_eq!(read("working_sets = \"cold\"").unwrap().working_set.unwrap().0.len(), 1);
        assert_eq!(read("quick = false").unwrap(), Wishes::default());
    }

    #[test]
    fn mistakes_name_their_place_and_the_nearest_word() {
        let check = |text: &str, expect: &str| {
            let message = read(text).unwrap_err();
            assert!(message.starts_with(expect), "{message}");
        };
        check("\n\nsize = 4", "x.toml:3:1: unknown key `size`, did you mean `sizes`?");
        check("weather = 1", "x.toml:1:1: unknown key `weather`; the keys are: study, quick,");
        check("sizes = [64,\n  \"64kB\"]", "x.toml:2:3: sizes: `64kB` is not a size");
        check(
            "# é\nmodes = \"é, stream\"",
            "x.toml:2:9: modes: unknown mode `é`; there is: stream",
        );
        check(
            "topologies=['vet']",
            "x.toml:1:13: topologies: unknown topology `vet`, did you mean",
        );
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
        let message = read("window = \"1s\"\nmessages = 5").unwrap_err();
        assert!(message.starts_with("x.toml:2:1: `"), "{message}");
        assert!(message.contains("`window`") && message.contains("`messages`"), "{message}");
        let twice = read("working_set = \"hot\"\nworking_sets = \"cold\"").unwrap_err();
        assert!(twice.contains("`working_set` is stated twice"), "{twice}");
    }

    #[test]
    fn a_primitive_that_does_not_exist_is_found_where_it_stands() {
        let none = |_: Study, _: &str, id: &str| Err(format!("unknown primitive `{id}`"));
        let message = parse("x.toml", "primitives = [\n \"sendd\"]", &none).unwrap_err();
        let shown = "  2 |  \"sendd\"]\n    |  ^^^^^^^";
        assert_eq!(message, format!("x.toml:2:2: unknown primitive `sendd`\n{shown}"));
    }

    #[test]
    fn a_mistake_is_shown_where_it_stands() {
        let check = |text: &str, shown: &str| {
            let message = read(text).unwrap_err();
            assert_eq!(message.split_once('\n').unwrap().1, shown, "{text:?}");
        };
        check("\nsize = 4 # é", "  2 | size = 4 # é\n    | ^^^^");
        check("modes = \"é, stream\"", "  1 | modes = \"é, stream\"\n    |         ^^^^^^^^^^^");
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

    #[test]
    fn every_key_can_be_written() {
        let text = "name = \"it's \\\"x\\\"\"\nquick = true\nprimitives = \"send,memcpy\"\n\
            baseline = \"send\"\nsizes = \"1000,64KiB\"\nthreads = \"1,2\"\ntopologies = \"auto,veth\"\n\
            modes = \"stream,rr\"\nworking_set = \"hot,cold\"\n\
            receivers = \"recv\"\nfields = \"1,8\"\niovec = \"prepared\"\n\
            reap_batch = [\"needed\", 8]\nuring_batch = [1, 4]\nuring_depth = 8\n\
            budget = \"90s\"\nprecision = \"2.5%\"\ndelta = 0.0333333333333\npasses = \"3..9\"\n\
            slice = \"1.5ms\"\nrounds = 7\nisolate = true\ncpus = \"1,0\"\nip = \"ipv6\"\nmtu = 9000\n\
            direction = \"rx\"\ncongestion = \"cubic\"\nsocket_buffer = \"1MiB\"\nreceive_size = 4096\n\
            counters = \"alternate\"\nsoftware_events = true\ntracepoints = true\n\
            allow_sysctl = true\nin_a_row = [\"fill\", 10]\n\
            cache = \"warm,cold\"\npattern = \"random\"\nconsumer = [\"none\", \"hash\"]\n\
            depth = [1, 8]\nfile = \"a b\"\ndir = \"/tmp\"\nfile_bytes = \"1GiB\"\nevict = true\n\
            drop_caches = [1, \"3\"]\ndestination = \"new\"\n\
            block = \"4KiB,128KiB\"\nsync = \"none,fsync\"\n\
            external = [\"mine='a b' {src} {dst}\"]\n\
            services = \"echo,payload:64\"\nconnections = [1, 10000]\nlength = \"short,long\"\n\
            load = \"closed,50%\"\narrivals = \"fixed\"\nin_flight = 2\nphase = \"2s\"\n\
            slo = [\"p99<2ms\", \"p50<1500us\"]\nknee = true\n\
            server_cpus = [0]\nclient_cpus = [1]\nclient_threads = 1\nbacklog = 128\n\
            seed = \"18446744073709551615\"\n";
        let wishes = read(text).unwrap();
        assert_eq!(read(&write(&wishes)).unwrap(), wishes);
        // The two ways that exclude slices, and nothing that is not a key.
        for classic in ["window = \"10s\"", "messages = 5000"] {
            let wishes = read(classic).unwrap();
            assert_eq!(read(&write(&wishes)).unwrap(), wishes);
        }
        let written: Vec<&str> = stated(&wishes).into_iter().map(|(key, _)| key).collect();
        for key in keys(&table()) {
            let elsewhere = [STUDY, "window", "messages"].contains(&key.as_str());
            assert!(elsewhere || written.contains(&key.as_str()), "{key} is not written");
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
            key in proptest::sample::select(keys(&table())),
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
