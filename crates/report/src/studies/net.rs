//! The study `net`.

pub(crate) mod figures;
pub(crate) mod screen;
pub(crate) mod sections;

use super::{OfSetting, StudyReport};
use crate::figure::{self, chart};
use crate::records::columns::{Ends, StudyColumns};
use crate::results;
use crate::sections::who_wins;

pub(super) static NET: StudyReport = StudyReport {
    per: " per size",
    nothing: "message by a method that does nothing",
    common: screen::common,
    screen: screen::fill,
    next: screen::next,
    question: "Which way to send is fastest?",
    claim: who_wins,
    sections: sections::sections,
    last: |run, analysis| Some(sections::last(run, analysis)),
    setting: OfSetting::Arms(|run, _, cell, columns| {
        results::results(&run.header.plan, &[cell], columns)
    }),
    plates: |run, analysis| figure::by_size(run, analysis, figures::all, |_| Vec::new()),
    sizes: chart::MESSAGES,
    leads: false,
    figures: sections::figures,
    after: "path",
    columns: COLUMNS,
};

const COLUMNS: StudyColumns = StudyColumns {
    ends: Ends::Both,
    keys: &[],
    // The columns that scripts may rely on come first, in the order in which they were promised.
    arms: "run pass position study arm primitive receiver fields working_set slices topology mode
        message_bytes threads status reason time_ns rx_bytes tx_bytes messages goodput_bits_per_s
        ns_per_message latency_mean_ns latency_p50_ns latency_p99_ns latency_p999_ns tx_cpu_ns
        rx_cpu_ns context_switches migrations minor_faults retransmits {:pmu} cycles_per_byte
        copies_sender copies_end_to_end zerocopy_sends zerocopy_completions zerocopy_copied_share
        role iovec isolated tx_calls rx_calls cycles voluntary_switches involuntary_switches
        major_faults softirq_ticks latency_samples zerocopy_enobufs {:sums} segments_out
        rx_mapped_bytes zerocopy_notifications_per_send {:tuning} rx_rearms rx_ring_enobufs host",
    whole: ["latency_histogram facts", "latency_histogram"],
    axes: "receiver fields iovec working_set topology mode message_bytes threads",
    // The clock of a slice is the sender's, which has a column by itself.
    slice: "tx_messages tx_bytes tx_calls {tx_:accounts} rx_messages rx_bytes rx_calls rx_time_ns
        {rx_:accounts} tx_zerocopy_sends tx_zerocopy_completions tx_zerocopy_copied
        tx_zerocopy_enobufs {tx_:pmu} {rx_:pmu} tx_cycles rx_cycles {tx_:later} {rx_:later}
        tx_segments_out rx_segments_out rx_mapped_bytes tx_zerocopy_notifications rx_rearms
        rx_ring_enobufs {:tuning}",
    figures: "goodput_bits_per_s goodput_low_bits_per_s goodput_high_bits_per_s
        {ns_per_message:interval} ns_per_byte tx_cpu_ns_per_byte rx_cpu_ns_per_byte
        tx_calls_per_message context_switches_per_message cycles_per_byte tx_cycles_per_byte
        rx_cycles_per_byte l1d_misses_per_kib llc_references_per_kib llc_misses_per_kib
        softirq_ns_per_byte copies_sender copies_end_to_end zerocopy_sends zerocopy_completions
        zerocopy_copied_share zerocopy_enobufs {percentiles} branch_misses_per_kib
        dtlb_misses_per_kib stalled_frontend_per_cycle stalled_backend_per_cycle
        run_delay_ns_per_message tx_messages_per_call tx_segments_per_message
        voluntary_switches_per_message involuntary_switches_per_message rx_mapped_share
        zerocopy_notifications_per_send {:tuning} rx_rearms rx_ring_enobufs {cpu_:ratio}",
    parts: &[("pair_tuning", "{:tuning}")],
};
