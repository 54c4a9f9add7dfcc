//! A slice: what each end counted in it.

use std::borrow::Cow;

use iolens_model::cell::{Cell, Setting};
use iolens_model::file::FileCounts;
use iolens_model::outcome::{KernelCounts, PmuCounts, SliceOutcome, TrialOutcome};
use iolens_model::run::Run;

use super::{PROMISED, Record, axes, counted, in_units, servers, tuning};
use crate::named::{Named, fields, named};
use crate::totals::Counted;

/// The row of a slice, with why an analysis does not rest on it.
pub(super) fn row(
    run: &Run,
    trial: &TrialOutcome,
    slice: &SliceOutcome,
    unused: Option<&str>,
) -> Record {
    let outcome = trial.arms.get(slice.arm);
    let arm = outcome.map(|outcome| &outcome.arm);
    let counts = Counted::of(slice);
    let cell = &trial.cell;
    let counts = match &cell.setting {
        Setting::Net(_) => [ends(Some(&counts)), tuning(cell)],
        Setting::Server(_) => [servers::offered(trial, slice), servers::counts(Some(&counts))],
        _ => {
            let counted = in_units(ends(Some(&counts)), cell.study());
            [found(cell, slice.tx.file.as_ref()), counted]
        }
    };
    let mut columns = [
        named! { run: run.header.id, pass: trial.pass, position: trial.position },
        fields!(Some(slice); seq round kind),
        named! { arm: arm.map(|arm| &arm.label), primitive: arm.map(|arm| &arm.primitive) },
        axes(cell),
        named! {
            isolated: trial.isolated,
            time_ns: slice.tx.time_ns,
            all_active_ns: slice.all_active_ns,
        },
        counts.concat(),
        named! { role: arm.map(|arm| arm.role), unused: unused },
    ]
    .concat();
    if cell.server().is_some() {
        let server = outcome.and_then(|outcome| outcome.server.as_ref());
        columns.extend(fields!(server; at_others_rate));
    }
    Record::new(run, columns, Vec::new())
}

/// The counts of both ends, `tx_` and `rx_`: what was promised, and behind it what came later.
pub(super) fn ends(counts: Option<&Counted>) -> Named {
    const ACCOUNTS: [&str; 12] = [
        "messages",
        "bytes",
        "calls",
        "time_ns",
        "cpu_ns",
        "voluntary_switches",
        "involuntary_switches",
        "migrations",
        "minor_faults",
        "major_faults",
        "retransmits",
        "softirq_ticks",
    ];
    const OF_ONE: [&str; 4] =
        ["rx_mapped_bytes", "tx_zerocopy_notifications", "rx_rearms", "rx_ring_enobufs"];
    let (promised, later) = PmuCounts::NAMES.split_at(PROMISED);
    let later = [&["run_delay_ns"], later, &KernelCounts::NAMES].concat();
    let zerocopy = ["sends", "completions", "copied", "enobufs"];
    let both = |names: &[&str]| {
        let of = |end| names.iter().map(move |name| format!("{end}_{name}"));
        of("tx").chain(of("rx")).collect::<Vec<String>>()
    };
    let names = [
        both(&ACCOUNTS),
        zerocopy.map(|name| format!("tx_zerocopy_{name}")).to_vec(),
        both(promised),
        both(&["cycles"]),
        both(&later),
        both(&["segments_out"]),
        OF_ONE.map(str::to_owned).to_vec(),
    ];
    // The clock of a slice is the sender's, which has a column by itself.
    let names = names.concat().into_iter().filter(|name| name != "tx_time_ns");
    counted(counts, names.map(Cow::<'static, str>::Owned))
}

/// What was found of a file: around one slice, or the most around several; what storage
/// delivered is a sum. Null where the kernel does not say.
pub(super) fn found(cell: &Cell, counts: Option<&FileCounts>) -> Named {
    match cell.setting {
        Setting::Write(_) => [
            fields!(counts; resident_before_bytes resident_after_bytes dirty_before_bytes),
            fields!(counts; dirty_after_bytes size_error_bytes),
            named! { short_writes: counts.map(|counts| counts.short_reads) },
        ]
        .concat(),
        Setting::File(_) | Setting::Copy(_) => fields!(
            counts;
            resident_before_bytes resident_after_bytes device_bytes short_reads would_block
        ),
        _ => Vec::new(),
    }
}
