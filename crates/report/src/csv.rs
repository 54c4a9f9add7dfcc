//! CSV after RFC 4180, line feeds for line ends. The runs of a table are of one study.

use std::borrow::Cow;
use std::collections::BTreeMap;

use iolens_document::plain::push_row;
use iolens_stats::analysis::Told;
use serde_json::Value;

use crate::export::{Columns, Rows, UnknownColumn};
use crate::number::UNUSABLE;
use crate::records::Record;
use crate::records::columns::of_end;
use crate::words::not_measured;

/// The rows with these columns: a header line and one line per row; nothing where there is no
/// row.
///
/// Errors: a column that the rows do not have.
pub fn of(rows: Rows<'_>, columns: Columns<'_>) -> Result<String, UnknownColumn> {
    Ok(render(rows.records(columns)?))
}

/// Why fields of the same rows are empty, where their runs know: a header line, and one line for
/// each column and stretch of rows, counted from 1 without the header; nothing without a reason.
///
/// Errors: a column that the rows do not have.
pub fn reasons(rows: Rows<'_>, columns: Columns<'_>) -> Result<String, UnknownColumn> {
    struct Gap<'a> {
        rows: [usize; 2],
        column: Cow<'static, str>,
        why: &'a str,
    }
    let told: Vec<Told> = rows.runs().iter().map(|run| Told::of(&run.trials)).collect();
    let ids = rows.runs().iter().map(|run| run.header.id.as_str());
    let whys: BTreeMap<&str, _> = ids.zip(told.iter().map(not_measured)).collect();
    let mut gaps: Vec<Gap<'_>> = Vec::new();
    for (row, record) in (1..).zip(rows.records(columns)?) {
        let Some(whys) = whys.get(record.run.as_str()) else { continue };
        for (column, _) in record.columns.iter().filter(|(_, value)| value.is_null()) {
            let no_ends = || has_no_ends(&record, column).then_some(UNUSABLE);
            let Some(why) = why(whys, column).or_else(no_ends) else { continue };
            let before = gaps.iter_mut().rfind(|gap| gap.column == *column);
            match before.filter(|gap| gap.rows[1] + 1 == row && gap.why == why) {
                Some(gap) => gap.rows[1] = row,
                None => gaps.push(Gap { rows: [row; 2], column: column.clone(), why }),
            }
        }
    }
    let mut out = String::new();
    for Gap { rows: [first, last], column, why } in gaps {
        if out.is_empty() {
            push_row(
                &mut out,
                ["first_row", "last_row", "column", "reason"].map(Into::into).into_iter(),
            );
        }
        let fields = [first.to_string(), last.to_string(), column.into_owned(), why.to_owned()];
        push_row(&mut out, fields.into_iter());
    }
    Ok(out)
}

/// Whether a column is the end of an interval, and only what the interval is of is known.
fn has_no_ends(record: &Record, column: &str) -> bool {
    let Some((_, whole)) = of_end(column) else { return false };
    let whole = whole.replacen("_simultaneous", "", 1);
    record.columns.iter().any(|(name, value)| *name == whole && !value.is_null())
}

/// Why there is nothing in a column: the reason of the metric that it has or is made of.
fn why<'a>(whys: &'a BTreeMap<&str, String>, column: &str) -> Option<&'a str> {
    let ends = ["tx_", "rx_", "server_", "client_"];
    let bare = ends.into_iter().find_map(|end| column.strip_prefix(end)).unwrap_or(column);
    let metric = match bare.split("_per_").next()? {
        "context_switches" => "voluntary_switches",
        "softirq_ns" => "softirq_ticks",
        "stalled_frontend" => "stalled_cycles_frontend",
        "stalled_backend" => "stalled_cycles_backend",
        "branch_miss_rate" => "branch_misses",
        "clock_ghz" => "cycles",
        whole => whole,
    };
    let of = |mode: &str| whys.get(format!("{metric}{mode}").as_str());
    ["", "_user", "_kernel"].into_iter().find_map(of).map(String::as_str)
}

fn render(records: impl Iterator<Item = Record>) -> String {
    let mut out = String::new();
    for record in records {
        if out.is_empty() {
            push_row(&mut out, record.columns.iter().map(|(name, _)| name.to_string()));
        }
        push_row(&mut out, record.columns.iter().map(|(_, value)| field(value)));
    }
    out
}

/// A null is an empty field, never 0.
fn field(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// All columns, for tests.
#[cfg(test)]
pub(crate) fn all(rows: Rows<'_>) -> String {
    of(rows, Columns::All).expect("every column")
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use super::*;
    use crate::fixture;
    use crate::tests::csv_fields;
    use iolens_document::Joined;
    use iolens_stats::analysis::Interval;
    use proptest::prelude::*;

    #[test]
    fn a_name_is_no_formula_and_a_number_stays_one() {
        let names = ["=1+1", "+cmd", "-x", "@sum", "-1.5", "+2e3", "a=b"];
        let mut line = String::new();
        push_row(&mut line, names.into_iter().map(str::to_owned));
        assert_eq!(line, "'=1+1,'+cmd,'-x,'@sum,-1.5,+2e3,a=b\n");
    }

    proptest! {
        #[test]
        fn quoting_round_trips(fields in prop::collection::vec("[a-z,\"\n\r µ]{0,12}", 1..6)) {
            let mut line = String::new();
            push_row(&mut line, fields.iter().cloned());
            prop_assert_eq!(csv_fields(line.strip_suffix('\n').expect("ends the line")), fields);
        }
    }

    #[test]
    fn columns_are_those_that_are_named_in_their_order() {
        let (run, _) = fixture::run();
        let runs = from_ref(&run);
        let named = ["threads", "arm"].map(str::to_owned);
        let text = of(Rows::Arms(runs), Columns::Named(&named)).unwrap();
        assert!(text.starts_with("threads,arm\n1,send_staged\n"), "{text}");
        let wrong = ["goodput".to_owned()];
        let none = of(Rows::Slices(runs), Columns::Named(&wrong)).unwrap_err();
        assert_eq!((none.name.as_str(), none.known[0].as_str()), ("goodput", "run"));
    }

    #[test]
    fn the_short_set_tells_rows_apart_and_says_what_came_of_them() {
        let (run, analysis) = fixture::run();
        let (runs, analyses) = (from_ref(&run), from_ref(&analysis));
        let short =
            |rows: Rows<'_>| of(rows, Columns::Named(&rows.short())).expect("columns of its own");
        // Times of requests are there where there are any, an axis where rows differ in it.
        let (with_rr, _) = fixture::whole();
        let tables = [
            Rows::Arms(runs),
            Rows::Slices(runs),
            Rows::Cells(runs, analyses),
            Rows::Arms(from_ref(&with_rr)),
        ];
        let header = |rows| short(rows).lines().next().map(str::to_owned).unwrap_or_default();
        insta::assert_snapshot!(tables.map(header).join("\n"), @"
        run,pass,arm,message_bytes,threads,status,reason,time_ns,messages,goodput_bits_per_s,ns_per_message,tx_cpu_ns,rx_cpu_ns,cycles
        run,pass,round,kind,arm,message_bytes,threads,time_ns,tx_messages,tx_cpu_ns,rx_bytes,rx_cpu_ns,tx_cycles,rx_cycles,unused
        run,arm,message_bytes,threads,status,reason,n,ratio,ratio_simultaneous_low,ratio_simultaneous_high,verdict,goodput_bits_per_s,ns_per_message,tx_cpu_ns_per_byte,rx_cpu_ns_per_byte,cycles_per_byte
        run,pass,arm,mode,message_bytes,threads,status,reason,time_ns,messages,goodput_bits_per_s,ns_per_message,latency_p50_ns,latency_p99_ns,tx_cpu_ns,rx_cpu_ns,cycles
        ");
    }

    #[test]
    fn reasons_stand_for_stretches_of_rows() {
        let (mut run, _) = fixture::run();
        run.trials.truncate(3);
        let rows = Rows::Arms(from_ref(&run));
        insta::assert_snapshot!(reasons(rows, Columns::Named(&rows.short())).unwrap(), @r#"
        first_row,last_row,column,reason
        1,18,cycles,"no PMU in this guest (event_source has software, msr, tracepoint)"
        "#);
        // A field that is empty for no reason is not in it, nor a whole table without any.
        let fields = ["zerocopy_sends", "reason", "arm"].map(str::to_owned);
        assert_eq!(reasons(rows, Columns::Named(&fields)).unwrap(), "");
        let whys =
            BTreeMap::from([("cycles_user", "a".to_owned()), ("l1d_misses", "b".to_owned())]);
        let of = |column| why(&whys, column);
        for column in ["cycles", "cycles_per_byte", "tx_cycles_user", "server_cycles_per_request"] {
            assert_eq!(of(column), Some("a"), "{column}");
        }
        assert_eq!((of("rx_l1d_misses_per_kib"), of("l1d_loads")), (Some("b"), None));
    }

    #[test]
    fn every_line_has_as_many_fields_as_the_header() {
        let (run, analysis) = fixture::run();
        for text in [
            all(Rows::Arms(from_ref(&run))),
            all(Rows::Slices(from_ref(&run))),
            all(Rows::Cells(from_ref(&run), from_ref(&analysis))),
        ] {
            let columns = text.lines().next().map(|header| csv_fields(header).len());
            assert!(text.lines().all(|line| Some(csv_fields(line).len()) == columns));
        }
    }

    #[test]
    fn an_interval_that_says_nothing_has_no_ends_and_a_reason() {
        let (run, mut analysis) = fixture::run();
        let wide = Interval { low: 1e-20, high: 1e20 };
        let mut arms = analysis.cells.iter_mut().flat_map(|cell| &mut cell.arms);
        let arm = arms.find(|arm| arm.contrast.is_some()).expect("a contrast");
        let contrast = arm.contrast.as_mut().expect("one");
        (contrast.pointwise, contrast.simultaneous) = (Some(wide), Some(wide));
        let time = arm.figures.as_mut().map(|figures| &mut figures.ns_per_message);
        time.expect("figures").interval = Some(wide);
        let (runs, analyses) = (from_ref(&run), from_ref(&analysis));
        let columns = "ns_per_message ratio ratio_low ratio_simultaneous_high ns_per_message_low";
        let columns: Vec<String> = columns.split(' ').map(str::to_owned).collect();
        let rows = Rows::Cells(runs, analyses);
        let table = of(rows, Columns::Named(&columns)).unwrap();
        let second = table.lines().nth(2).unwrap_or_default();
        assert_eq!(second, "1043.5638899811038,1.0619986558521342,,,");
        insta::assert_snapshot!(reasons(rows, Columns::Named(&columns)).unwrap(), @"
        first_row,last_row,column,reason
        2,2,ratio_low,no usable interval
        2,2,ratio_simultaneous_high,no usable interval
        2,2,ns_per_message_low,no usable interval
        ");
    }

    #[test]
    fn arms_have_sums_and_nulls() {
        let (run, _) = fixture::run();
        let text = all(Rows::Arms(from_ref(&run)));
        let head = text.lines().take(2);
        insta::assert_snapshot!(head.joined("\n"), @"
        run,pass,position,study,arm,primitive,receiver,fields,working_set,slices,topology,mode,message_bytes,threads,status,reason,time_ns,rx_bytes,tx_bytes,messages,goodput_bits_per_s,ns_per_message,latency_mean_ns,latency_p50_ns,latency_p99_ns,latency_p999_ns,tx_cpu_ns,rx_cpu_ns,context_switches,migrations,minor_faults,retransmits,cycles_user,cycles_kernel,instructions_user,instructions_kernel,l1d_loads,l1d_misses,llc_references,llc_misses,cycles_per_byte,copies_sender,copies_end_to_end,zerocopy_sends,zerocopy_completions,zerocopy_copied_share,role,iovec,isolated,tx_calls,rx_calls,cycles,voluntary_switches,involuntary_switches,major_faults,softirq_ticks,latency_samples,zerocopy_enobufs,run_delay_ns,branches,branch_misses,dtlb_loads,dtlb_misses,stalled_cycles_frontend,stalled_cycles_backend,perf_task_clock_ns,perf_context_switches,perf_migrations,perf_minor_faults,perf_major_faults,sys_enter,skb_copy_datagram_iovec,tcp_retransmit_skb,sched_switch,segments_out,rx_mapped_bytes,zerocopy_notifications_per_send,ip,mtu_bytes,socket_buffer_bytes,receive_size_bytes,reap_batch,uring_depth,uring_batch,ring_flags,busy_poll_us,rx_rearms,rx_ring_enobufs,host
        4f1c09ab,1,0,net,send_staged,send_staged,recv,8,hot,2,loopback,stream,64,1,ok,,2253654,128000,128000,2000,454373209.01966316,1126.827,,,,,2186044,1374728,16,0,0,0,,,,,,,,,,2.0,3.0,,,,baseline,per-message,false,2000,2000,,12,4,0,,,,21860,,,,,,,,,,,,,,,,,,,ipv4,,524288,131072,,1,1,single_issuer+defer_taskrun,,,,
        ");
        assert_eq!(text.lines().count(), 1 + 12 * 6 * 6);
        let failed = text.lines().find(|line| line.contains(",failed,"));
        insta::assert_snapshot!(failed.unwrap_or_default(), @"4f1c09ab,1,5,net,send_per_field,send_per_field,recv,8,hot,,loopback,stream,262144,4,failed,2 trials failed while its slice ran: recv: ECONNRESET (connection reset by peer),,,,,,,,,,,,,,,,,,,,,,,,,,1.0,2.0,,,,compared,per-message,false,,,,,,,,,,,,,,,,,,,,,,,,,,,,,ipv4,,524288,131072,,1,1,single_issuer+defer_taskrun,,,,");
    }

    #[test]
    fn the_promised_columns_come_first_and_in_order() {
        const PROMISED: &str = "run,pass,position,study,arm,primitive,receiver,fields,\
            working_set,slices,topology,mode,message_bytes,threads,status,reason,time_ns,\
            rx_bytes,tx_bytes,messages,goodput_bits_per_s,ns_per_message,latency_mean_ns,\
            latency_p50_ns,latency_p99_ns,latency_p999_ns,tx_cpu_ns,rx_cpu_ns,\
            context_switches,migrations,minor_faults,retransmits,cycles_user,cycles_kernel,\
            instructions_user,instructions_kernel,l1d_loads,l1d_misses,llc_references,\
            llc_misses,cycles_per_byte,copies_sender,copies_end_to_end,zerocopy_sends,\
            zerocopy_completions,zerocopy_copied_share";
        const FURTHER: &str = "role,iovec,isolated,tx_calls,rx_calls,cycles,voluntary_switches,\
            involuntary_switches,major_faults,softirq_ticks,latency_samples,zerocopy_enobufs,\
            run_delay_ns,branches,branch_misses,dtlb_loads,dtlb_misses,stalled_cycles_frontend,\
            stalled_cycles_backend,perf_task_clock_ns,perf_context_switches,perf_migrations,\
            perf_minor_faults,perf_major_faults,sys_enter,skb_copy_datagram_iovec,\
            tcp_retransmit_skb,sched_switch,segments_out,rx_mapped_bytes,\
            zerocopy_notifications_per_send,ip,mtu_bytes,\
            socket_buffer_bytes,receive_size_bytes,reap_batch,uring_depth,uring_batch,ring_flags,\
            busy_poll_us,rx_rearms,rx_ring_enobufs,host";
        for (run, _) in [fixture::run(), fixture::whole()] {
            let text = all(Rows::Arms(from_ref(&run)));
            assert_eq!(text.lines().next(), Some(format!("{PROMISED},{FURTHER}").as_str()));
        }
    }

    /// The value of a column in a line.
    fn value<'a>(text: &'a str, line: &'a str, column: &str) -> String {
        let header = csv_fields(text.lines().next().expect("a header"));
        let at = header.iter().position(|name| name == column).expect("a column");
        csv_fields(line)[at].clone()
    }

    #[test]
    fn zero_copy_pmu_and_latency_columns_are_filled_where_there_is_something() {
        let (run, _) = fixture::whole();
        let text = all(Rows::Arms(from_ref(&run)));
        let line = |parts: &[&str]| {
            let has = |line: &&str| parts.iter().all(|part| line.contains(part));
            text.lines().find(has).expect("a row")
        };
        let zerocopy = line(&["sendmsg_zerocopy,", ",rr,64,1,ok"]);
        let of = |column| value(&text, zerocopy, column);
        assert_eq!(
            (of("zerocopy_sends"), of("zerocopy_completions")),
            ("2000".into(), of("messages"))
        );
        assert_eq!(of("zerocopy_copied_share"), "1.0");
        assert!(of("cycles_user").parse::<u64>().is_ok_and(|cycles| cycles > 0));
        // 400 times are enough for a 99th percentile and not for the next.
        assert!(of("latency_p99_ns").parse::<u64>().is_ok_and(|ns| ns > 0));
        assert_eq!((of("latency_samples"), of("latency_p999_ns")), ("400".into(), String::new()));
        let plain = line(&["send_staged,", ",stream,64,1,ok"]);
        let of = |column| value(&text, plain, column);
        assert_eq!((of("zerocopy_sends"), of("latency_p50_ns")), (String::new(), String::new()));
    }

    #[test]
    fn slices_and_cells_begin_with_their_headers() {
        let (run, analysis) = fixture::run();
        let slices = all(Rows::Slices(from_ref(&run)));
        let head = slices.lines().take(2);
        insta::assert_snapshot!(head.joined("\n"));
        let cells = all(Rows::Cells(from_ref(&run), from_ref(&analysis)));
        let head = cells.lines().take(3);
        insta::assert_snapshot!(head.joined("\n"));
    }
}
