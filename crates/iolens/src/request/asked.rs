//! From a question about one message to the plan of a short run that answers it: the message,
//! a quarter of it and four times as much, since how far an answer holds is part of it.

use iolens_model::axes::Study;
use iolens_model::cell::Cell;
use iolens_model::plan::Plan;
use iolens_model::units::{Bytes, Nanos};
use iolens_stats::asked::Asked;

use super::arms::in_our_words;
use super::{Available, Request, arms, complete, plan};
use crate::args::Ask;
use crate::axes::Wishes;
use crate::failure::Failure;
use crate::studies::{SLICE, StudySpec};
use crate::values::{Stand, distinct};

/// How much smaller and larger the messages beside it are.
const STEP: u64 = 4;

/// What a slice lasts at most over all the threads that share processors.
const SLICE_OF_ALL: Nanos = Nanos(32_000_000);

/// Turns from which on a trial has fewer rounds, and the run more time.
const TURNS_MANY: u64 = 4;
const ROUNDS_OF_MANY: u32 = 5;
const BUDGET_OF_MANY: Nanos = Nanos(60 * Nanos::SECOND.0);

/// The plan that answers, and what the user ought to know about it. Messages beside it that
/// cannot be measured are left out, and that is said.
///
/// Errors: the message itself cannot be measured here, by `check` or before it.
pub(crate) fn plan_of(
    ask: &Ask,
    cpus: usize,
    seed: u64,
    available: Available<'_>,
    check: &dyn Fn(&Plan) -> Result<(), Failure>,
) -> Result<Request, Failure> {
    let of = |sizes: Vec<Bytes>| {
        let wishes = complete(wishes(ask, sizes, cpus))?;
        let request = plan(wishes, seed, available)?;
        check(&request.plan).map(|()| request)
    };
    let beside = beside(ask.size);
    let all = sizes(ask.size, &beside);
    let why = match of(all) {
        Ok(request) => return Ok(request),
        Err(why) => why,
    };
    // The larger one needs more memory; only the smaller one is sure to do if its own does.
    let smaller: Vec<Bytes> = beside.iter().copied().filter(|&size| size < ask.size).collect();
    let mut request = of(sizes(ask.size, &smaller)).or_else(|_| of(vec![ask.size]))?;
    let missing: Vec<String> = beside
        .iter()
        .filter(|size| !request.plan.sizes.contains(size))
        .map(ToString::to_string)
        .collect();
    let why = why.message.lines().next().unwrap_or_default().to_owned();
    request.notes.push(format!("{} is not measured beside it: {why}", missing.join(", ")));
    Ok(request)
}

/// What a stored run must have to answer.
pub(crate) fn question(ask: &Ask, plan: &Plan) -> Option<Asked> {
    let cell = plan.cells().into_iter().find(|cell| cell.size == ask.size)?;
    let (primitives, baseline) = (plan.primitives.clone(), plan.baseline.clone());
    Some(Asked { cell, primitives, baseline })
}

/// Methods that are asked about and that a plan has not.
///
/// Errors: a word stands for no method.
pub(crate) fn lacking(ask: &Ask, plan: &Plan) -> Result<Vec<String>, Failure> {
    let spec = ask.methods.as_ref().and_then(|_| StudySpec::of(Study::Net));
    let Some(spec) = spec else { return Ok(Vec::new()) };
    let external = plan.programs().to_vec();
    let wishes = Wishes { methods: ask.methods.clone(), external, ..Wishes::default() };
    let mut wanted = arms::listed(&(spec.arms)(), &in_our_words(spec, wishes).0)?;
    wanted.retain(|id| !plan.primitives.contains(id));
    Ok(distinct(wanted))
}

/// The cell of a plan with this message, as many connections and, where it was stated, this
/// network: on the axes that were not asked about the first.
pub(crate) fn cell_in(ask: &Ask, plan: &Plan) -> Option<Cell> {
    let is_it = |cell: &Cell| {
        let stands = |topology| match ask.network {
            Stand::Auto => true,
            Stand::At(stated) => stated == topology,
        };
        let net = cell.net().filter(|net| net.fields == ask.fields && net.mode == ask.mode);
        net.is_some_and(|net| stands(net.topology))
            && cell.size == ask.size
            && cell.threads == ask.connections
    };
    plan.cells().into_iter().find(is_it)
}

fn beside(size: Bytes) -> Vec<Bytes> {
    let smaller = (size.0 >= STEP).then_some(Bytes(size.0 / STEP));
    let larger = size.0.checked_mul(STEP).filter(|&bytes| bytes <= Bytes::GIB).map(Bytes);
    smaller.into_iter().chain(larger).collect()
}

fn sizes(size: Bytes, beside: &[Bytes]) -> Vec<Bytes> {
    let mut all: Vec<Bytes> = beside.iter().copied().chain([size]).collect();
    all.sort_unstable();
    all
}

/// The plan of a first look, with slices that are not longer for many connections than a short
/// run has time for.
fn wishes(ask: &Ask, sizes: Vec<Bytes>, cpus: usize) -> Wishes {
    let workers = u64::from(ask.connections) * 2;
    let turns = workers.div_ceil(cpus.max(1) as u64).max(1);
    let many = turns > TURNS_MANY;
    let slice = (SLICE.0 * turns > SLICE_OF_ALL.0).then_some(Nanos(SLICE_OF_ALL.0 / turns));
    Wishes {
        quick: true,
        methods: ask.methods.clone(),
        sizes: Some(sizes),
        threads: Some(vec![ask.connections]),
        fields: Some(vec![ask.fields]),
        mode: Some(vec![ask.mode]),
        network: Some(vec![ask.network]),
        slice,
        rounds: many.then_some(ROUNDS_OF_MANY),
        budget: ask.budget.or(many.then_some(BUDGET_OF_MANY)),
        ..Wishes::default()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use iolens_model::axes::Topology;
    use iolens_model::plan::Schedule;

    use super::*;
    use crate::args::{Args, Command};

    fn ask(line: &str) -> Ask {
        let words = format!("iolens ask {line}");
        match Args::try_parse_from(words.split_whitespace()).unwrap().command {
            Command::Ask(ask) => *ask,
            other => panic!("{other:?}"),
        }
    }

    fn planned(line: &str, cpus: usize, largest: u64) -> Result<Request, String> {
        let check = |plan: &Plan| match plan.sizes.iter().find(|size| size.0 > largest) {
            Some(size) => Err(Failure::unusable(format!("no memory for {size}\n  advice"))),
            None => Ok(()),
        };
        plan_of(&ask(line), cpus, 1, &|_| Ok(()), &check).map_err(|failure| failure.message)
    }

    #[test]
    fn a_message_is_measured_between_a_quarter_and_four_times_of_it() {
        let check = |line: &str, expect: &[u64]| {
            let plan = planned(line, 2, u64::MAX).unwrap().plan;
            let sizes: Vec<u64> = plan.sizes.iter().map(|size| size.0).collect();
            assert_eq!(sizes, expect, "{line}");
            let asked = question(&ask(line), &plan).unwrap();
            assert_eq!(Some(&asked.cell), cell_in(&ask(line), &plan).as_ref());
            assert!(plan.quick && plan.cells().contains(&asked.cell));
        };
        check("--size 12KiB --connections 40 --fields 3", &[3072, 12_288, 49_152]);
        check("--size 1", &[1, 4]);
        check("--size 1GiB", &[1 << 28, 1 << 30]);
        check("--size 1000 --mode rr --network loopback", &[250, 1000, 4000]);
    }

    #[test]
    fn what_does_not_fit_beside_it_is_left_out_and_said() {
        let request = planned("--size 1MiB", 2, 1 << 20).unwrap();
        assert_eq!(request.plan.sizes, [Bytes(1 << 18), Bytes(1 << 20)]);
        assert_eq!(request.notes, ["4 MiB is not measured beside it: no memory for 4 MiB"]);
        let refused = planned("--size 1MiB", 2, 1000).unwrap_err();
        assert_eq!(refused, "no memory for 1 MiB\n  advice");
    }

    #[test]
    fn many_connections_make_slices_of_each_shorter_not_the_run_longer() {
        let slice = |line: &str, cpus| match planned(line, cpus, u64::MAX).unwrap().plan.schedule {
            Schedule::Slices { slice, rounds, .. } => (slice.0, rounds),
            other => panic!("{other:?}"),
        };
        assert_eq!(slice("--size 64", 2), (SLICE.0, super::super::ROUNDS));
        assert_eq!(slice("--size 64 --connections 40", 2), (800_000, ROUNDS_OF_MANY));
        assert_eq!(slice("--size 64 --connections 40", 80).0, SLICE.0);
        assert_eq!(slice("--size 64 --connections 1024", 0).0, SLICE_OF_ALL.0 / 2048);
    }

    #[test]
    fn other_axes_of_a_stored_run_are_no_other_message() {
        let wishes = Wishes {
            sizes: Some(vec![Bytes(64), Bytes(1024)]),
            threads: Some(vec![1, 4]),
            network: Some(vec![Stand::At(Topology::Sink), Stand::At(Topology::Loopback)]),
            ip: Some(vec![iolens_model::axes::IpVersion::V6]),
            ..Wishes::default()
        };
        let stored = plan(complete(wishes).unwrap(), 1, &|_| Ok(())).unwrap().plan;
        let cell = cell_in(&ask("--size 1KiB --connections 4"), &stored).unwrap();
        assert_eq!((cell.size, cell.threads), (Bytes(1024), 4));
        for other in ["--size 1KiB --connections 2", "--size 2KiB", "--size 64 --fields 3"] {
            assert_eq!(cell_in(&ask(other), &stored), None, "{other}");
        }
        let stands = |network: &str| {
            let asked = ask(&format!("--size 64 --network {network}"));
            cell_in(&asked, &stored).map(|cell| cell.net().unwrap().topology)
        };
        assert_eq!(stands("auto"), Some(Topology::Sink));
        assert_eq!(stands("loopback"), Some(Topology::Loopback));
        assert_eq!(stands("veth"), None);
    }

    #[test]
    fn a_named_run_lacks_methods_that_it_did_not_compare() {
        let wishes = Wishes {
            methods: Some(vec!["send_staged".to_owned(), "send".to_owned()]),
            ..Wishes::default()
        };
        let stored = plan(complete(wishes).unwrap(), 1, &|_| Ok(())).unwrap().plan;
        let check = |line: &str, expect: &[&str]| {
            let asked = ask(&format!("--size 64 {line}"));
            assert_eq!(lacking(&asked, &stored).unwrap(), expect, "{line}");
        };
        check("", &[]);
        check("--methods two-copy,send", &[]);
        check("--methods classic", &["sendmsg_iov", "sendmsg_zerocopy"]);
        assert!(lacking(&ask("--size 64 --methods nosuch"), &stored).is_err());
    }
}
