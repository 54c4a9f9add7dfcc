//! The table of what a run can be asked for, and what follows from an entry: a flag of each study
//! that has it, a key of plan files, what goes before what, and `--print-plan`.

pub(crate) mod help;
mod table;

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command};
use iolens_engine::far::Launcher;
use iolens_harness::perf_control::PerfControl;
use iolens_model::axes::{Study, Topology};
use iolens_model::external::External;
use iolens_model::plan::Passes;
use iolens_model::server::LoadLevel;
use iolens_model::slo::Slo;
use iolens_model::tuning::{BusyPoll, RingDepth, RingFlags};
use iolens_model::units::{Bytes, Nanos};
use toml::Value;

use crate::values::{self, List, Named, Stand};

pub(crate) use self::help::{long_help, short_help};
pub(crate) use self::table::{AXES, Wishes};

/// One thing that can be asked for.
pub(crate) struct Axis {
    /// What the code calls it, in every study.
    pub(crate) field: &'static str,
    pub(crate) place: Place,
    group: Group,
    /// What its value is called in help; a switch has none.
    value: &'static str,
    kind: Kind,
    names: &'static [Name],
    /// What it was called before.
    was: &'static [&'static str],
    /// Fields that cannot be stated beside it; each names the other.
    not_with: &'static [&'static str],
    /// A field that must be stated beside it.
    needs: &'static [&'static str],
    short: Option<char>,
    /// Reads a value, as typed.
    pub(crate) set: fn(&mut Wishes, &str) -> Result<(), String>,
    /// The value as a plan file has it.
    stated: fn(&Wishes) -> Option<Value>,
    clear: fn(&mut Wishes),
}

/// What a value belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// The plan: it is stored, and a key of plan files.
    Plan,
    /// This one run of the program.
    Run,
}

/// How often it can be stated, and with what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// On or off.
    Switch,
    /// With one value, perhaps a list.
    Once,
    /// Each time with another value.
    Repeated,
}

/// What some studies call it: a long flag, and a key with `_` for `-`.
struct Name {
    flag: &'static str,
    studies: &'static [Study],
    help: &'static str,
}

iolens_model::words! {
    /// The parts of a help text, in order.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Group {
        Compare = "What to compare (LIST: comma-separated; every value adds settings)",
        Load = "Load",
        Files = "Which file",
        Exact = "How long, how exact",
        Messages = "How messages are built and received",
        Network = "Network settings",
        Peer = "Another machine (docs/clusters.md)",
        Machine = "Machine and counters",
        Experts = "Experts (METHOD.md)",
        After = "Before and after",
    }
}

/// A field of [`Wishes`].
trait Wish: Default {
    type Item: Written;
    const KIND: Kind;

    fn put(&mut self, item: Self::Item);
    fn stated(&self) -> Option<Value>;
}

impl Wish for bool {
    type Item = ();
    const KIND: Kind = Kind::Switch;

    fn put(&mut self, (): ()) {
        *self = true;
    }

    fn stated(&self) -> Option<Value> {
        self.then_some(Value::Boolean(true))
    }
}

impl<T: Written> Wish for Option<T> {
    type Item = T;
    const KIND: Kind = Kind::Once;

    fn put(&mut self, item: T) {
        *self = Some(item);
    }

    fn stated(&self) -> Option<Value> {
        self.as_ref().map(Written::written)
    }
}

impl<T: Written> Wish for Vec<T> {
    type Item = T;
    const KIND: Kind = Kind::Repeated;

    fn put(&mut self, item: T) {
        self.push(item);
    }

    fn stated(&self) -> Option<Value> {
        let values = self.iter().map(Written::written).collect();
        (!self.is_empty()).then_some(Value::Array(values))
    }
}

impl Axis {
    /// What a study calls it, if it has it.
    pub(crate) fn flag(&self, study: Study) -> Option<&'static str> {
        self.name(study).map(|name| name.flag)
    }

    /// As a key of plan files.
    pub(crate) fn key(&self, study: Study) -> Option<String> {
        let flag = self.flag(study).filter(|_| self.place == Place::Plan)?;
        Some(flag.replace('-', "_"))
    }

    fn name(&self, study: Study) -> Option<&'static Name> {
        self.names.iter().find(|name| name.studies.contains(&study))
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// Fields that cannot be stated beside it.
    pub(crate) fn excludes(&self, other: &Axis) -> bool {
        self.not_with.contains(&other.field) || other.not_with.contains(&self.field)
    }

    fn argument(&'static self, study: Study) -> Option<Arg> {
        let name = self.name(study)?;
        let arg = Arg::new(self.field).long(name.flag).help(name.help);
        let arg = match self.short {
            Some(letter) => arg.short(letter),
            None => arg,
        };
        let of_study = |fields: &'static [&'static str]| {
            let has = move |field: &&'static str| {
                find(field).is_some_and(|axis| axis.flag(study).is_some())
            };
            fields.iter().copied().filter(has)
        };
        let arg = arg
            .help_heading(self.group.word())
            .conflicts_with_all(of_study(self.not_with))
            .requires_all(of_study(self.needs));
        let checked =
            move |text: &str| (self.set)(&mut Wishes::default(), text).map(|()| text.to_owned());
        Some(match self.kind {
            Kind::Switch => arg.action(ArgAction::SetTrue),
            Kind::Once => arg.value_name(self.value).value_parser(checked),
            Kind::Repeated => {
                arg.action(ArgAction::Append).value_name(self.value).value_parser(checked)
            }
        })
    }
}

/// The entry of a field.
pub(crate) fn find(field: &str) -> Option<&'static Axis> {
    AXES.iter().find(|axis| axis.field == field)
}

/// The flags of a study, on a command of it.
pub(crate) fn arguments(study: Study, command: Command) -> Command {
    command.args(AXES.iter().filter_map(|axis| axis.argument(study)))
}

/// What a flag that a study does not have is called there, or whose it is; none where nobody has
/// it. `mark` writes a name as a flag or as a key.
pub(crate) fn elsewhere(study: Study, flag: &str, mark: fn(&str) -> String) -> Option<String> {
    let own = |axis: &&Axis| axis.was.contains(&flag) && axis.flag(study).is_some();
    if let Some(now) = AXES.iter().find(own).and_then(|axis| axis.flag(study)) {
        return Some(format!("{} is now {}", mark(flag), mark(now)));
    }
    let named = |axis: &&Axis| axis.names.iter().any(|name| name.flag == flag);
    let once = |axis: &&Axis| axis.was.contains(&flag);
    let axis = AXES.iter().find(named).or_else(|| AXES.iter().find(once))?;
    if let Some(here) = axis.flag(study) {
        return Some(format!("{} is {} in run {study}", mark(flag), mark(here)));
    }
    let has = |study: &&Study| axis.flag(**study).is_some();
    let owners: Vec<&str> = Study::OF_RUN.iter().filter(has).map(|study| study.word()).collect();
    let owners = match &owners[..] {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        only => only.concat(),
    };
    Some(format!("run {study} has no {}; it belongs to run {owners}", mark(flag)))
}

/// Whether some study has this flag.
pub(crate) fn is_flag(flag: &str) -> bool {
    AXES.iter().any(|axis| axis.names.iter().any(|name| name.flag == flag))
}

/// The new flag of an old one, where a command that is not of this table has the new one.
pub(crate) fn renamed(flag: &str, has: impl Fn(&str) -> bool) -> Option<&'static str> {
    let was = AXES.iter().filter(|axis| axis.was.contains(&flag));
    was.flat_map(|axis| axis.names).map(|name| name.flag).find(|flag| has(flag))
}

impl Wishes {
    /// What a command line of a study states.
    ///
    /// Errors: what is wrong with a value; the parser has had a look at each before.
    pub(crate) fn of_matches(study: Study, matches: &ArgMatches) -> Result<Wishes, String> {
        let mut wishes = Wishes { study: Some(study), ..Wishes::default() };
        for axis in AXES.iter().filter(|axis| axis.flag(study).is_some()) {
            if axis.kind == Kind::Switch {
                if matches.get_flag(axis.field) {
                    (axis.set)(&mut wishes, "")?;
                }
                continue;
            }
            for text in matches.get_many::<String>(axis.field).into_iter().flatten() {
                (axis.set)(&mut wishes, text)?;
            }
        }
        Ok(wishes)
    }

    /// These wishes, and where they are silent what `below` says. What is stated here takes the
    /// place of what cannot stand beside it.
    pub(crate) fn or(self, mut below: Wishes) -> Wishes {
        for own in AXES.iter().filter(|axis| (axis.stated)(&self).is_some()) {
            AXES.iter()
                .filter(|other| own.excludes(other))
                .for_each(|other| (other.clear)(&mut below));
        }
        self.filled(below)
    }

    /// These wishes where `flags` may name another machine: messages go there, unless the flags say
    /// something else.
    pub(crate) fn towards_peer(self, flags: &Wishes) -> Wishes {
        let is_net = self.study.is_none_or(|study| study == Study::Net);
        match is_net && flags.peer.is_some() && flags.network.is_none() {
            true => Wishes { network: Some(vec![Stand::At(Topology::Host)]), ..self },
            false => self,
        }
    }

    /// What is stated of the plan, key by key, in the order of the help.
    pub(crate) fn stated(&self) -> Vec<(String, Value)> {
        let study = self.study.unwrap_or(Study::Net);
        let row = |axis: &Axis| Some((axis.key(study)?, (axis.stated)(self)?));
        AXES.iter().filter_map(row).collect()
    }
}

/// A value of a plan file.
trait Written {
    fn written(&self) -> Value;
}

impl<T: Named> Written for T {
    fn written(&self) -> Value {
        Value::String(self.word().to_owned())
    }
}

impl<T: Written> Written for List<T> {
    fn written(&self) -> Value {
        Value::Array(self.iter().map(Written::written).collect())
    }
}

/// A switch is stated by itself.
impl Written for () {
    fn written(&self) -> Value {
        Value::Boolean(true)
    }
}

impl Written for u32 {
    fn written(&self) -> Value {
        Value::Integer(i64::from(*self))
    }
}

/// TOML's integers have a sign; the largest seeds and counts do not fit.
impl Written for u64 {
    fn written(&self) -> Value {
        i64::try_from(*self).map_or_else(|_| Value::String(self.to_string()), Value::Integer)
    }
}

/// Writes types as text.
macro_rules! as_text {
    ($($type:ty: $text:expr;)+) => {
        $(impl Written for $type {
            fn written(&self) -> Value {
                let text: fn(&$type) -> String = $text;
                Value::String(text(self))
            }
        })+
    };
}

as_text! {
    String: String::clone;
    f64: |x| values::written_fraction(*x);
    BusyPoll: ToString::to_string;
    Bytes: |size| values::written_size(*size);
    Nanos: |span| Nanos::written(*span);
    Passes: |passes| values::written_passes(*passes);
    External: values::server::written_external;
    // Completions that are read after so many sends, and calls in a row.
    Option<u32>: |batch| values::written_reap_batch(*batch);
    Option<Bytes>: |size| values::written_size(size.unwrap_or_default());
    Option<u64>: |calls| values::written_burst(*calls);
    PathBuf: |path| path.display().to_string();
    IpAddr: ToString::to_string;
    Launcher: ToString::to_string;
    LoadLevel: ToString::to_string;
    PerfControl: ToString::to_string;
    RingDepth: ToString::to_string;
    RingFlags: ToString::to_string;
    Slo: ToString::to_string;
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use iolens_model::tuning::Tuning;

    use super::*;

    /// The sources of this crate, each without its tests.
    fn sources(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, found);
            } else {
                let text = std::fs::read_to_string(&path).unwrap();
                let code = text.split("#[cfg(test)]").next().unwrap_or_default().to_owned();
                found.push((path, code));
            }
        }
    }

    #[test]
    fn an_axis_is_named_in_its_entry_and_where_plans_are_made_of_it() {
        let compiled = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let root = std::env::var_os("CARGO_MANIFEST_DIR").map_or(compiled, Into::into).join("src");
        let mut found = Vec::new();
        sources(&root, &mut found);
        let uses = found
            .iter()
            .filter(|(path, code)| code.contains("Wishes") && !path.starts_with(root.join("axes")));
        let uses: Vec<_> = uses.filter(|(path, _)| !path.ends_with("tests.rs")).collect();
        assert!(uses.len() > 8);
        // Names of one word mean other things too.
        let plain = |axis: &&Axis| axis.place == Place::Plan && axis.field.contains('_');
        for axis in AXES.iter().filter(plain) {
            let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let names = |(_, code): &&&(PathBuf, String)| {
                code.split(|c| !is_letter(c)).any(|word| word == axis.field)
            };
            let named: Vec<&PathBuf> = uses.iter().filter(names).map(|(path, _)| path).collect();
            let is_listed = Tuning::FIELDS.contains(&axis.field);
            assert!(is_listed || !named.is_empty(), "{} is not used", axis.field);
            let is_made_here = |path: &Path| {
                let path = path.to_string_lossy();
                ["/request", "/studies"].iter().any(|place| path.contains(place))
            };
            let outside = named.iter().find(|path| !is_made_here(path));
            assert!(outside.is_none(), "{} is named in {outside:?}", axis.field);
        }
    }

    #[test]
    fn names_are_distinct_in_each_study_and_none_is_an_old_one() {
        for &study in Study::OF_RUN {
            let flags: Vec<&str> = AXES.iter().filter_map(|axis| axis.flag(study)).collect();
            for (index, flag) in flags.iter().enumerate() {
                assert!(!flags[..index].contains(flag), "{study}: --{flag}");
            }
            for axis in AXES.iter().filter(|axis| axis.flag(study).is_some()) {
                let old = axis.was.iter().filter(|was| axis.flag(study) != Some(*was));
                for was in old {
                    assert!(!flags.contains(was), "{study}: --{was}");
                }
            }
        }
    }

    #[test]
    fn what_excludes_another_is_excluded_by_it() {
        let [time, slice, wait] =
            ["sequential_time", "slice", "wait"].map(|field| find(field).unwrap());
        assert!(time.excludes(slice) && slice.excludes(time) && !slice.excludes(wait));
    }
}
