//! Which runs have ratios to one baseline file, by what is known of them before their trials are
//! read.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use iolens_model::ab::{AbAxes, AbMode, AbQuantity, AbSetting};
use iolens_model::plan::Schedule;
use iolens_model::run::RunHeader;
use iolens_model::units::Nanos;
use serde::Serialize;

use crate::interval::count;

/// Which part of a history is wanted; all of it by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AbWanted {
    /// The baseline.
    pub baseline: Option<AbWantedBaseline>,
    /// The arm's name.
    pub arm: Option<String>,
    /// The newest so many runs of each series.
    pub last: Option<usize>,
    /// What is compared; by default time, or CPU time where that alone was judged.
    pub quantity: Option<AbQuantity>,
    /// Runs of which each has the program of the one before as its baseline, instead of runs
    /// beside one.
    pub is_chain: bool,
}

/// A baseline by what tells its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AbWantedBaseline {
    /// What it is called.
    pub name: String,
    /// The beginning of its SHA-256, or all of it.
    pub sha256: String,
}

/// Runs that belong together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AbJoined {
    /// Series of two runs or more.
    pub series: Vec<AbJoinedSeries>,
    /// Runs that are in none, or not in all of their settings.
    pub left_out: Vec<AbLeftOut>,
}

impl AbJoined {
    /// Places of the runs whose trials are needed.
    pub fn runs(&self) -> BTreeSet<usize> {
        self.series.iter().flat_map(|series| &series.members).map(|member| member.run).collect()
    }
}

/// Runs of one arm beside one baseline in one setting, oldest first.
#[derive(Debug, Clone, PartialEq)]
pub struct AbJoinedSeries {
    /// The values of parameters.
    pub setting: AbSetting,
    /// What is compared.
    pub quantity: AbQuantity,
    /// The runs.
    pub members: Vec<AbMember>,
    /// Older ones, which are not wanted.
    pub older: u32,
    /// Whether each has the program of the one before as its baseline.
    pub is_chain: bool,
}

/// An arm of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AbMember {
    /// The run, by its place.
    pub run: usize,
    /// The arm, by its place; 0 is the baseline.
    pub arm: usize,
}

/// Runs that are in no series.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AbLeftOut {
    /// Why not.
    pub why: AbLeftOutWhy,
    /// Their ids, oldest first.
    pub runs: Vec<String>,
}

/// Why a run is in no series, what is told first being first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AbLeftOutWhy {
    /// Its baseline has the name that is asked for, and is another file.
    OtherFile,
    /// No other run has its baseline's file, arguments and settings.
    Alone,
    /// Some of its arms or settings are in no other run.
    PartlyAlone,
    /// Of a chain: both sides are one file.
    OneFile,
    /// The baseline is several links, whose ratio is not to one file.
    Links,
    /// It did not judge the quantity.
    NotJudged,
    /// It has not ended, or was killed.
    NotEnded,
    /// It is damaged.
    Damaged,
}

/// What must be the same of two runs for their ratios to be of one arm to one baseline.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    /// SHA-256 of the baseline's file; empty of chains, in which it changes.
    baseline: String,
    baseline_arguments: Vec<String>,
    /// The arm's name; `None` of the only arm of a run, which is itself whatever it is called.
    arm: Option<String>,
    arm_arguments: Vec<String>,
    setting: AbSetting,
    /// Of loops.
    slice: Option<Nanos>,
    in_place: bool,
    input: Option<String>,
    prepare: Option<Vec<String>>,
}

impl Key {
    /// That of an arm in a setting; `None` where too little is known of it.
    fn of(header: &RunHeader, axes: &AbAxes, setting: &AbSetting, arm: usize) -> Option<Key> {
        let arguments = |program: usize| Some(axes.command(setting, program)?.get(1..)?.to_vec());
        let slice = match header.plan.schedule {
            Schedule::Slices { slice, .. } if axes.mode == AbMode::Loop => Some(slice),
            _ => None,
        };
        let name = &axes.programs.get(arm)?.name;
        Some(Key {
            baseline: header.ab_program(setting, 0)?.sha256.clone(),
            baseline_arguments: arguments(0)?,
            arm: (axes.programs.len() > 2).then(|| name.clone()),
            arm_arguments: arguments(arm)?,
            setting: setting.clone(),
            slice,
            in_place: axes.in_place,
            input: axes.input(setting).map(str::to_owned),
            prepare: axes.prepare(setting).map(<[String]>::to_vec),
        })
    }
}

/// Series in the order in which they begin.
#[derive(Default)]
struct Found {
    keys: HashMap<Key, Vec<usize>>,
    series: Vec<(AbSetting, Vec<AbMember>)>,
    /// By series, what the newest run ends with: SHA-256 of the arm's file.
    ends: Vec<String>,
}

impl Found {
    /// To the runs beside the same baseline.
    fn add(&mut self, key: Key, member: AbMember) {
        let at = self.keys.get(&key).and_then(|all| all.first().copied());
        let at = at.unwrap_or_else(|| self.begin(key));
        self.push(at, member);
    }

    /// To the longest chain that ends with its baseline, of these the newest.
    fn chain(&mut self, key: Key, member: AbMember, [from, to]: [&str; 2]) {
        let key = Key { baseline: String::new(), ..key };
        let fitting = self.keys.get(&key).into_iter().flatten().copied();
        let fitting = fitting.filter(|&at| self.ends[at] == from);
        let longest = fitting.max_by_key(|&at| self.series[at].1.len());
        let at = longest.unwrap_or_else(|| self.begin(key));
        self.push(at, member);
        to.clone_into(&mut self.ends[at]);
    }

    fn begin(&mut self, key: Key) -> usize {
        let at = self.series.len();
        self.series.push((key.setting.clone(), Vec::new()));
        self.ends.push(String::new());
        self.keys.entry(key).or_default().push(at);
        at
    }

    fn push(&mut self, at: usize, member: AbMember) {
        self.series[at].1.push(member);
    }
}

/// Joins runs by their headers; those of other studies are passed over.
pub fn join(headers: &[RunHeader], wanted: &AbWanted) -> AbJoined {
    let mut order: Vec<usize> = (0..headers.len()).collect();
    order.sort_by_key(|&run| headers[run].started_unix_ns);
    let (mut found, mut left) = (Found::default(), Left::default());
    for &run in &order {
        let header = &headers[run];
        let Some(axes) = header.plan.ab() else { continue };
        if let Some(why) = unfit(header, axes, wanted) {
            left.add(why, run);
            continue;
        }
        let cells = header.plan.cells();
        // A value that was given twice is one setting.
        let mut seen = HashSet::new();
        let settings = cells.iter().filter_map(|cell| cell.ab());
        for setting in settings.filter(|&setting| seen.insert(setting)) {
            for arm in arms(axes, wanted) {
                let key = Key::of(header, axes, setting, arm);
                let Some(key) = key.filter(|key| wanted.is_baseline(&key.baseline)) else {
                    continue;
                };
                let member = AbMember { run, arm };
                match header.ab_program(setting, arm) {
                    _ if !wanted.is_chain => found.add(key, member),
                    Some(to) if to.sha256 != key.baseline => {
                        let from = key.baseline.clone();
                        found.chain(key, member, [&from, &to.sha256]);
                    }
                    _ => left.add(AbLeftOutWhy::OneFile, run),
                }
            }
        }
    }
    let mut joined = AbJoined::default();
    let mut alone = Vec::new();
    for (setting, members) in found.series {
        match series(headers, wanted, setting, members, &mut left) {
            Ok(series) => joined.series.push(series),
            Err(run) => alone.extend(run),
        }
    }
    let in_series = joined.runs();
    for run in alone {
        let is_part = in_series.contains(&run);
        left.add(if is_part { AbLeftOutWhy::PartlyAlone } else { AbLeftOutWhy::Alone }, run);
    }
    for series in &mut joined.series {
        let last = wanted.last.unwrap_or(usize::MAX);
        let older = series.members.len().saturating_sub(last);
        series.members.drain(..older);
        series.older = count(older);
    }
    joined.left_out = left.told(headers, &order);
    joined
}

impl AbWanted {
    fn is_baseline(&self, sha256: &str) -> bool {
        let wanted = self.baseline.as_ref();
        wanted.is_none_or(|wanted| sha256.starts_with(&wanted.sha256))
    }
}

/// Places of the arms that are wanted.
fn arms<'a>(axes: &'a AbAxes, wanted: &'a AbWanted) -> impl Iterator<Item = usize> + 'a {
    let all = axes.programs.iter().enumerate().skip(1);
    let is_wanted = |name: &str| wanted.arm.as_deref().is_none_or(|wanted| wanted == name);
    all.filter(move |(_, program)| is_wanted(&program.name)).map(|(arm, _)| arm)
}

/// Why a whole run is in no series.
fn unfit(header: &RunHeader, axes: &AbAxes, wanted: &AbWanted) -> Option<AbLeftOutWhy> {
    let files = header.programs.iter().step_by(axes.programs.len().max(1));
    let has_wanted = files.clone().any(|file| wanted.is_baseline(&file.sha256));
    let name = axes.programs.first().map(|baseline| &baseline.name);
    let is_called_so = wanted.baseline.as_ref().is_some_and(|w| Some(&w.name) == name);
    if arms(axes, wanted).next().is_none() || !(has_wanted || is_called_so) {
        return None;
    }
    match () {
        () if axes.links => Some(AbLeftOutWhy::Links),
        () if header.end.is_none() => Some(AbLeftOutWhy::NotEnded),
        () if !has_wanted => Some(AbLeftOutWhy::OtherFile),
        () => None,
    }
}

/// A series of runs that judged what is compared; the run where there is but one.
fn series(
    headers: &[RunHeader],
    wanted: &AbWanted,
    setting: AbSetting,
    members: Vec<AbMember>,
    left: &mut Left,
) -> Result<AbJoinedSeries, Option<usize>> {
    let judges = |member: &AbMember, quantity: AbQuantity| {
        headers[member.run].plan.ab().is_some_and(|axes| axes.judged.contains(&quantity))
    };
    let of_newest = [AbQuantity::Time, AbQuantity::Cpu].into_iter();
    let of_newest =
        members.last().and_then(|newest| of_newest.clone().find(|q| judges(newest, *q)));
    let quantity = wanted.quantity.or(of_newest).unwrap_or(AbQuantity::Time);
    let (members, others): (Vec<AbMember>, Vec<AbMember>) =
        members.into_iter().partition(|member| judges(member, quantity));
    others.iter().for_each(|other| left.add(AbLeftOutWhy::NotJudged, other.run));
    match &members[..] {
        [] => Err(None),
        [alone] => Err(Some(alone.run)),
        _ => Ok(AbJoinedSeries { setting, quantity, members, older: 0, is_chain: wanted.is_chain }),
    }
}

/// Places of runs that are left out, by why.
#[derive(Default)]
struct Left(BTreeMap<AbLeftOutWhy, BTreeSet<usize>>);

impl Left {
    fn add(&mut self, why: AbLeftOutWhy, run: usize) {
        self.0.entry(why).or_default().insert(run);
    }

    /// Their ids, in this order.
    fn told(self, headers: &[RunHeader], order: &[usize]) -> Vec<AbLeftOut> {
        let one = |(why, runs): (AbLeftOutWhy, BTreeSet<usize>)| {
            let runs = order.iter().filter(|run| runs.contains(run));
            AbLeftOut { why, runs: runs.map(|&run| headers[run].id.clone()).collect() }
        };
        self.0.into_iter().map(one).collect()
    }
}
