//! Plan files of `iolens ab`: the flags of that command as keys, and a list of benches. What was
//! said of other plan files holds here too.

use std::fmt::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};

use iolens_model::ab::{AbAxes, AbParameter, AbQuantity};
use iolens_model::units::Nanos;
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Value};

use super::{Mistake, items, told};
use crate::values::{self, List, Parsed, unknown};

/// What a plan file of `ab` says; `None` of what it does not.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct AbFile {
    pub(crate) is_loop: bool,
    /// Command lines, the baseline first; none where there are benches.
    pub(crate) commands: Vec<String>,
    pub(crate) names: Option<List<String>>,
    pub(crate) with: Vec<AbParameter>,
    pub(crate) links: bool,
    pub(crate) input: Option<PathBuf>,
    pub(crate) prepare: Option<String>,
    pub(crate) in_place: bool,
    pub(crate) ignore_exit: bool,
    pub(crate) different_output: bool,
    pub(crate) cpus: Option<List<u32>>,
    pub(crate) slice: Option<Nanos>,
    pub(crate) start_limit: Option<Nanos>,
    pub(crate) warmup: Option<Nanos>,
    pub(crate) no_calls: bool,
    pub(crate) judge: Option<List<AbQuantity>>,
    pub(crate) threshold: Option<f64>,
    pub(crate) budget: Option<Nanos>,
    pub(crate) seed: Option<u64>,
    pub(crate) name: Option<String>,
    /// None where there are commands.
    pub(crate) benches: Vec<AbFileBench>,
}

/// A bench, as it is written.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct AbFileBench {
    pub(crate) name: String,
    /// Command lines, the baseline first; at least one.
    pub(crate) commands: Vec<String>,
    pub(crate) with: Vec<AbParameter>,
    pub(crate) input: Option<PathBuf>,
    pub(crate) prepare: Option<String>,
}

const BENCHES: &str = "bench";

const KEYS: [&str; 21] = [
    "loop",
    "commands",
    "names",
    "with",
    "links",
    "input",
    "prepare",
    "in_place",
    "ignore_exit",
    "different_output",
    "cpus",
    "slice",
    "start_limit",
    "warmup",
    "no_calls",
    "judge",
    "threshold",
    "budget",
    "seed",
    "name",
    BENCHES,
];

const BENCH_KEYS: [&str; 5] = ["name", "commands", "with", "input", "prepare"];

/// Flags of the command that are no keys.
const FLAGS: [&str; 9] =
    ["against", "strict", "wait", "db", "json", "markdown", "verbose", "progress", "print_plan"];

type Entry<'a> = (&'a Spanned<std::borrow::Cow<'a, str>>, &'a Spanned<DeValue<'a>>);

/// Reads a plan. `file` is its name in messages.
///
/// Errors: as of other plan files.
pub(crate) fn parse(file: &str, text: &str) -> Result<AbFile, String> {
    read(text).map_err(|mistake| told(file, text, mistake))
}

fn read(text: &str) -> Result<AbFile, Mistake> {
    let document = DeTable::parse(text)
        .map_err(|e| Mistake { span: e.span().unwrap_or(0..0), message: e.message().to_owned() })?;
    let mut file = AbFile::default();
    for (key, value) in sorted(document.get_ref()) {
        take(&mut file, key, value)?;
    }
    let mistake = |message: String| Err(Mistake { span: 0..0, message });
    match (file.commands.is_empty(), file.benches.is_empty()) {
        (true, true) => mistake(format!(
            "there is no command in it: write commands = [\"OLD\", \"NEW\"], or [[{BENCHES}]], a \
             name and commands"
        )),
        (false, false) => mistake(format!(
            "`commands` and [[{BENCHES}]] cannot be used together: make the commands a bench"
        )),
        _ => Ok(file),
    }
}

/// Takes the value of a key.
fn take(
    file: &mut AbFile,
    key: &Spanned<std::borrow::Cow<'_, str>>,
    value: &Spanned<DeValue<'_>>,
) -> Result<(), Mistake> {
    let is_on = |name| switch(name, value);
    match key.get_ref().as_ref() {
        "loop" => file.is_loop = is_on("loop")?,
        "commands" => file.commands = each("commands", value, command)?,
        "names" => file.names = Some(joined("names", value, values::names)?),
        "with" => file.with = each("with", value, values::server::parameter)?,
        "links" => file.links = is_on("links")?,
        "input" => file.input = Some(only("input", value, values::path)?),
        "prepare" => file.prepare = Some(only("prepare", value, command)?),
        "in_place" => file.in_place = is_on("in_place")?,
        "ignore_exit" => file.ignore_exit = is_on("ignore_exit")?,
        "different_output" => file.different_output = is_on("different_output")?,
        "cpus" => file.cpus = Some(joined("cpus", value, values::cpus)?),
        "slice" => file.slice = Some(joined("slice", value, values::ab_slice)?),
        "start_limit" => file.start_limit = Some(joined("start_limit", value, values::span)?),
        "warmup" => file.warmup = Some(joined("warmup", value, values::span)?),
        "no_calls" => file.no_calls = is_on("no_calls")?,
        "judge" => file.judge = Some(joined("judge", value, values::list)?),
        "threshold" => file.threshold = Some(joined("threshold", value, values::fraction)?),
        "budget" => file.budget = Some(joined("budget", value, values::span)?),
        "seed" => file.seed = Some(joined("seed", value, values::seed)?),
        "name" => file.name = Some(only("name", value, values::run_name)?),
        BENCHES => file.benches = benches(value)?,
        other => return Err(unknown_key(key, other, &KEYS)),
    }
    Ok(())
}

/// The keys of a table in the order of the file.
fn sorted<'a>(table: &'a DeTable<'a>) -> Vec<Entry<'a>> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

fn unknown_key(key: &Spanned<std::borrow::Cow<'_, str>>, word: &str, keys: &[&str]) -> Mistake {
    let message = match FLAGS.contains(&word) {
        true => {
            let flag = word.replace('_', "-");
            format!("`{word}` is not a key of a plan: give it as the flag --{flag}")
        }
        false => unknown("key", word, keys, &format!("the keys are: {}", keys.join(", "))),
    };
    Mistake { span: key.span(), message }
}

fn benches(value: &Spanned<DeValue<'_>>) -> Result<Vec<AbFileBench>, Mistake> {
    let wrong = |span| Mistake { span, message: format!("write each bench as [[{BENCHES}]]") };
    let DeValue::Array(tables) = value.get_ref() else { return Err(wrong(value.span())) };
    let mut benches: Vec<AbFileBench> = Vec::new();
    for table in tables {
        let DeValue::Table(entries) = table.get_ref() else { return Err(wrong(table.span())) };
        let bench = bench(table, entries)?;
        if benches.iter().any(|before| before.name == bench.name) {
            let message = format!("two benches are called `{}`", bench.name);
            return Err(Mistake { span: table.span(), message });
        }
        benches.push(bench);
    }
    Ok(benches)
}

fn bench(table: &Spanned<DeValue<'_>>, entries: &DeTable<'_>) -> Result<AbFileBench, Mistake> {
    let mut bench = AbFileBench::default();
    for (key, value) in sorted(entries) {
        match key.get_ref().as_ref() {
            "name" => bench.name = only("name", value, name)?,
            "commands" => bench.commands = each("commands", value, command)?,
            "with" => bench.with = each("with", value, parameter)?,
            "input" => bench.input = Some(only("input", value, values::path)?),
            "prepare" => bench.prepare = Some(only("prepare", value, command)?),
            other => return Err(unknown_key(key, other, &BENCH_KEYS)),
        }
    }
    let missing = [("name", bench.name.is_empty()), ("commands", bench.commands.is_empty())];
    match missing.into_iter().find(|(_, is_missing)| *is_missing) {
        Some((key, _)) => {
            let message = format!("this bench has no `{key}`");
            Err(Mistake { span: table.span(), message })
        }
        None => Ok(bench),
    }
}

fn name(text: &str) -> Parsed<String> {
    let is_fine = !text.trim().is_empty() && !text.contains(char::is_control);
    match is_fine {
        true => Ok(text.trim().to_owned()),
        false => Err("a bench needs a name of one line".to_owned()),
    }
}

fn command(text: &str) -> Parsed<String> {
    Ok(text.to_owned())
}

/// A parameter of a bench, whose own name is one already.
fn parameter(text: &str) -> Parsed<AbParameter> {
    let parameter = values::server::parameter(text)?;
    match parameter.name == AbAxes::BENCH {
        true => Err(format!("`{{{}}}` stands for the bench's own name", AbAxes::BENCH)),
        false => Ok(parameter),
    }
}

fn switch(key: &str, value: &Spanned<DeValue<'_>>) -> Result<bool, Mistake> {
    let wrong =
        || Mistake { span: value.span(), message: format!("`{key}` must be true or false") };
    value.get_ref().as_bool().ok_or_else(wrong)
}

/// A list as its flag takes it, or a single value.
fn joined<T>(
    key: &str,
    value: &Spanned<DeValue<'_>>,
    parse: impl Fn(&str) -> Parsed<T>,
) -> Result<T, Mistake> {
    let texts: Vec<String> = items(key, value)?.into_iter().map(|(text, _)| text).collect();
    parse(&texts.join(","))
        .map_err(|why| Mistake { span: value.span(), message: format!("{key}: {why}") })
}

/// Every item of a list by itself.
fn each<T>(
    key: &str,
    value: &Spanned<DeValue<'_>>,
    parse: impl Fn(&str) -> Parsed<T>,
) -> Result<Vec<T>, Mistake> {
    let one = |(text, span): (String, Range<usize>)| {
        parse(&text).map_err(|why| Mistake { span, message: format!("{key}: {why}") })
    };
    items(key, value)?.into_iter().map(one).collect()
}

/// The only value of a key.
fn only<T>(
    key: &str,
    value: &Spanned<DeValue<'_>>,
    parse: impl Fn(&str) -> Parsed<T>,
) -> Result<T, Mistake> {
    let message = || format!("`{key}` must be one text in quotes");
    let text = value.get_ref().as_str();
    let text = text.ok_or_else(|| Mistake { span: value.span(), message: message() })?;
    parse(text).map_err(|why| Mistake { span: value.span(), message: format!("{key}: {why}") })
}

/// A plan file that says this and nothing else.
pub(crate) fn write(file: &AbFile) -> String {
    let mut out = String::new();
    let mut say = |key: &str, value: Option<Value>| {
        // Writing to a string cannot fail.
        let _ = value.map(|value| writeln!(out, "{key} = {value}"));
    };
    say("loop", on(file.is_loop));
    say("commands", texts(file.commands.iter().cloned()));
    say("names", file.names.as_ref().and_then(|names| texts(names.iter().cloned())));
    say("with", texts(file.with.iter().map(written_parameter)));
    say("links", on(file.links));
    say("input", file.input.as_deref().map(path));
    say("prepare", file.prepare.clone().map(Value::String));
    say("in_place", on(file.in_place));
    say("ignore_exit", on(file.ignore_exit));
    say("different_output", on(file.different_output));
    let cpus = |cpus: &List<u32>| cpus.iter().map(|cpu| Value::from(i64::from(*cpu))).collect();
    say("cpus", file.cpus.as_ref().map(cpus).map(Value::Array));
    let span = |span: Option<Nanos>| span.map(|span| Value::String(span.written()));
    say("slice", span(file.slice));
    say("start_limit", span(file.start_limit));
    say("warmup", span(file.warmup));
    say("no_calls", on(file.no_calls));
    let judged = |judged: &List<AbQuantity>| texts(judged.iter().map(ToString::to_string));
    say("judge", file.judge.as_ref().and_then(judged));
    say("threshold", file.threshold.map(|x| Value::String(values::written_fraction(x))));
    say("budget", span(file.budget));
    say("seed", file.seed.map(|seed| Value::String(seed.to_string())));
    say("name", file.name.clone().map(Value::String));
    for bench in &file.benches {
        let _ = write!(out, "\n{}", written_bench(bench));
    }
    out
}

fn written_bench(bench: &AbFileBench) -> String {
    let mut out = format!("[[{BENCHES}]]\n");
    let all = [
        ("name", Some(Value::String(bench.name.clone()))),
        ("commands", texts(bench.commands.iter().cloned())),
        ("with", texts(bench.with.iter().map(written_parameter))),
        ("input", bench.input.as_deref().map(path)),
        ("prepare", bench.prepare.clone().map(Value::String)),
    ];
    for (key, value) in all {
        let _ = value.map(|value| writeln!(out, "{key} = {value}"));
    }
    out
}

/// A switch is stated where it is on.
fn on(is_on: bool) -> Option<Value> {
    is_on.then_some(Value::Boolean(true))
}

/// A list, unless it is empty.
fn texts(texts: impl Iterator<Item = String>) -> Option<Value> {
    let texts: Vec<Value> = texts.map(Value::String).collect();
    (!texts.is_empty()).then_some(Value::Array(texts))
}

fn path(path: &Path) -> Value {
    Value::String(path.display().to_string())
}

fn written_parameter(parameter: &AbParameter) -> String {
    format!("{}={}", parameter.name, parameter.values.join(","))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BENCH: &str = "[[bench]]\nname = \"a\"\ncommands = [\"x 1\", \"y 1\"]\n";

    fn read(text: &str) -> Result<AbFile, String> {
        parse("x.toml", text)
    }

    #[test]
    fn keys_are_the_words_of_flags() {
        let text = "loop = true\nnames = [\"old\", \"new\"]\njudge = \"cpu\"\nthreshold = \"2%\"\n\
                    budget = \"90s\"\nwith = [\"n=1,2\"]\nin_place = false\n";
        let second = "[[bench]]\nname = \"b\"\ncommands = [\"x\", \"y\"]\ninput = \"in\"\n\
                      prepare = \"sync now\"\nwith = \"m=3\"\n";
        let file = read(&format!("{text}{BENCH}{second}")).unwrap();
        assert!(file.is_loop && !file.in_place);
        assert_eq!(file.names, Some(vec!["old".to_owned(), "new".to_owned()]));
        assert_eq!((file.threshold, file.budget), (Some(0.02), Some(Nanos(90_000_000_000))));
        assert_eq!((file.judge, &file.with[0].name[..]), (Some(vec![AbQuantity::Cpu]), "n"));
        let [a, b] = &file.benches[..] else { panic!("{:?}", file.benches) };
        assert_eq!((&a.name[..], &a.commands[..]), ("a", &["x 1", "y 1"].map(str::to_owned)[..]));
        assert_eq!((&b.prepare, &b.with[0].name[..]), (&Some("sync now".to_owned()), "m"));
    }

    #[test]
    fn mistakes_name_their_place_and_the_nearest_word() {
        let check = |text: &str, expect: &str| {
            let message = read(text).unwrap_err();
            assert!(message.starts_with(expect), "{message}");
        };
        check("", "x.toml:1:1: there is no command in it");
        check("\ntreshold = 1", "x.toml:2:1: unknown key `treshold`, did you mean `threshold`?");
        check("strict = true", "x.toml:1:1: `strict` is not a key of a plan: give it as the flag");
        check("loop = 1", "x.toml:1:8: `loop` must be true or false");
        check("judge = \"tim\"", "x.toml:1:9: judge: unknown");
        check("budget = \"soon\"", "x.toml:1:10: budget: ");
        check("input = [1]", "x.toml:1:9: `input` must be one text");
        check("bench = 1", "x.toml:1:9: write each bench as [[bench]]");
        check(&format!("commands = \"x\"\n{BENCH}"), "x.toml:1:1: `commands` and [[bench]] cannot");
        check("warmup = \"0s\"", "x.toml:1:10: warmup: ");
        check("cpus = \"all\"", "x.toml:1:8: cpus: ");
        check("slice = \"1m\"", "x.toml:1:9: slice: a slice of 1.00 min is");
        assert!(!read("slice = \"1m\"").unwrap_err().contains("--"));
        check("bench = [1]", "x.toml:1:10: write each bench as [[bench]]");
        check("[[bench]]\nname = \"a\"", "x.toml:1:1: this bench has no `commands`");
        check("[[bench]]\ncommands = [\"a\"]", "x.toml:1:1: this bench has no `name`");
        check("[[bench]]\nname = \" \"", "x.toml:2:8: name: a bench needs a name");
        check("[[bench]]\nnam = \"a\"", "x.toml:2:1: unknown key `nam`, did you mean `name`?");
        check("[[bench]]\nwith = \"bench=1\"", "x.toml:2:8: with: `{bench}` stands for");
        check(&format!("{BENCH}{BENCH}"), "x.toml:4:1: two benches are called `a`");
    }

    #[test]
    fn what_is_written_is_read_as_the_same() {
        let text = "loop = true\ncommands = [\"a {n}\", \"b 'x y'\"]\nnames = [\"A\", \"B\"]\n\
                    with = [\"n=1,2\"]\nlinks = true\nin_place = true\ndifferent_output = true\n\
                    cpus = [0, 2]\nslice = \"1ms\"\nstart_limit = \"1s\"\nwarmup = \"200ms\"\n\
                    no_calls = true\njudge = [\"cpu\"]\nthreshold = \"2%\"\nbudget = \"90s\"\n\
                    seed = \"7\"\nname = \"nightly\"\n";
        assert_eq!(write(&read(text).unwrap()), text);
        let text = "input = \"in\"\nprepare = \"sync now\"\nignore_exit = true\n\n[[bench]]\n\
                    name = \"a\"\ncommands = [\"x\", \"y\"]\n\n[[bench]]\nname = \"b \\\"c\"\n\
                    commands = [\"x {m}\", \"y\"]\nwith = [\"m=3\"]\ninput = \"z\"\n\
                    prepare = \"true\"\n";
        let file = read(text).unwrap();
        assert_eq!(read(&write(&file)).unwrap(), file);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn no_text_makes_the_parser_panic(text in "(?s).{0,80}") {
            let _ = read(&text);
            let _ = read(&format!("{BENCH}{text}"));
        }

        #[test]
        fn no_value_makes_a_key_panic(
            key in proptest::sample::select([&KEYS[..], &BENCH_KEYS[..]].concat()),
            value in "([0-9a-zA-Z\"'\\[\\]{},.%_=\\- é\n]{0,24})",
        ) {
            let _ = read(&format!("{key} = {value}\n{BENCH}"));
            let _ = read(&format!("{BENCH}{key} = {value}"));
            let _ = read(&format!("{BENCH}{key} = {}", toml::Value::String(value)));
        }
    }
}
