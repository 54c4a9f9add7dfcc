//! CSV after RFC 4180, line feeds for line ends. Quoting is four lines, so it
//! is ours and not a crate's. The runs of a table are of one study.

use iolens_model::run::Run;
use iolens_stats::analysis::Analysis;
use serde_json::Value;

use crate::records::{self, Record};

/// One row per arm and trial: sums over the measured slices.
#[must_use]
pub fn arms(runs: &[Run]) -> String {
    render(runs.iter().flat_map(records::arms))
}

/// One row per slice, both ends, discarded slices too.
#[must_use]
pub fn slices(runs: &[Run]) -> String {
    render(runs.iter().flat_map(records::slices))
}

/// One row per arm and cell: figures, ratio, intervals, verdict.
#[must_use]
pub fn cells(runs: &[Run], analyses: &[Analysis]) -> String {
    render(runs.iter().zip(analyses).flat_map(|(run, analysis)| records::cells(run, analysis)))
}

/// One row per phase of a search.
#[must_use]
pub fn phases(runs: &[Run]) -> String {
    render(runs.iter().flat_map(records::phases))
}

/// A header line and one line per row; nothing where there is no row.
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

/// Adds one line.
pub(crate) fn push_row(out: &mut String, fields: impl Iterator<Item = String>) {
    for (i, field) in fields.enumerate() {
        if i > 0 {
            out.push(',');
        }
        out.push_str(&quote(&field));
    }
    out.push('\n');
}

/// A field, quoted where it has to be: RFC 4180, section 2, rules 5 to 7. A name that a
/// spreadsheet would take for a formula has a `'` before it.
fn quote(field: &str) -> String {
    let is_formula = field.starts_with(['=', '+', '-', '@']) && field.parse::<f64>().is_err();
    let shielded = if is_formula { format!("'{field}") } else { field.to_owned() };
    let field = &shielded;
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use proptest::prelude::*;

    /// A reader of our own output, for the round trip only.
    fn parse(line: &str) -> Vec<String> {
        let mut fields = vec![String::new()];
        let mut quoted = false;
        let mut chars = line.chars().peekable();
        while let Some(c) = chars.next() {
            let last = fields.last_mut().expect("there is always one field");
            match c {
                '"' if quoted && chars.peek() == Some(&'"') => {
                    chars.next();
                    last.push('"');
                }
                '"' => quoted = !quoted,
                ',' if !quoted => fields.push(String::new()),
                other => last.push(other),
            }
        }
        fields
    }

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
            prop_assert_eq!(parse(line.strip_suffix('\n').expect("ends the line")), fields);
        }
    }

    #[test]
    fn every_line_has_as_many_fields_as_the_header() {
        let (run, analysis) = fixture::run();
        for text in [
            arms(std::slice::from_ref(&run)),
            slices(std::slice::from_ref(&run)),
            cells(std::slice::from_ref(&run), std::slice::from_ref(&analysis)),
        ] {
            let columns = text.lines().next().map(|header| parse(header).len());
            assert!(text.lines().all(|line| Some(parse(line).len()) == columns));
        }
    }

    #[test]
    fn arms_have_sums_and_nulls() {
        let (run, _) = fixture::run();
        let text = arms(std::slice::from_ref(&run));
        let head: Vec<&str> = text.lines().take(2).collect();
        insta::assert_snapshot!(head.join("\n"), @"
        run,pass,position,study,arm,primitive,receiver,fields,working_set,slices,topology,mode,message_bytes,threads,status,reason,time_ns,rx_bytes,tx_bytes,messages,goodput_bits_per_s,ns_per_message,latency_mean_ns,latency_p50_ns,latency_p99_ns,latency_p999_ns,tx_cpu_ns,rx_cpu_ns,context_switches,migrations,minor_faults,retransmits,cycles_user,cycles_kernel,instructions_user,instructions_kernel,l1d_loads,l1d_misses,llc_references,llc_misses,cycles_per_byte,copies_sender,copies_end_to_end,zerocopy_sends,zerocopy_completions,zerocopy_copied_share,role,iovec,isolated,tx_calls,rx_calls,voluntary_switches,involuntary_switches,major_faults,softirq_ticks,latency_samples,zerocopy_enobufs,run_delay_ns,branches,branch_misses,dtlb_loads,dtlb_misses,stalled_cycles_frontend,stalled_cycles_backend,perf_task_clock_ns,perf_context_switches,perf_migrations,perf_minor_faults,perf_major_faults,sys_enter,skb_copy_datagram_iovec,tcp_retransmit_skb,sched_switch,segments_out,rx_mapped_bytes,zerocopy_notifications_per_send,ip,mtu_bytes,socket_buffer_bytes,receive_size_bytes,reap_batch,uring_depth,uring_batch,rx_rearms,rx_ring_enobufs,host
        4f1c09ab,1,0,net,send_staged,send_staged,recv,8,hot,2,loopback,stream,64,1,ok,,2253654,128000,128000,2000,454373209.01966316,1126.827,,,,,2186044,1374728,16,0,0,0,,,,,,,,,,2.0,3.0,,,,baseline,per-message,false,2000,2000,12,4,0,,,,21860,,,,,,,,,,,,,,,,,,,ipv4,,524288,131072,,1,1,,,
        ");
        assert_eq!(text.lines().count(), 1 + 12 * 6 * 6);
        let failed = text.lines().find(|line| line.contains(",failed,"));
        insta::assert_snapshot!(failed.unwrap_or_default(), @"4f1c09ab,1,5,net,send_per_field,send_per_field,recv,8,hot,,loopback,stream,262144,4,failed,2 trials failed while its slice ran: recv: ECONNRESET (connection reset by peer),,,,,,,,,,,,,,,,,,,,,,,,,,1.0,2.0,,,,compared,per-message,false,,,,,,,,,,,,,,,,,,,,,,,,,,,,ipv4,,524288,131072,,1,1,,,");
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
        const FURTHER: &str = "role,iovec,isolated,tx_calls,rx_calls,voluntary_switches,\
            involuntary_switches,major_faults,softirq_ticks,latency_samples,zerocopy_enobufs,\
            run_delay_ns,branches,branch_misses,dtlb_loads,dtlb_misses,stalled_cycles_frontend,\
            stalled_cycles_backend,perf_task_clock_ns,perf_context_switches,perf_migrations,\
            perf_minor_faults,perf_major_faults,sys_enter,skb_copy_datagram_iovec,\
            tcp_retransmit_skb,sched_switch,segments_out,rx_mapped_bytes,\
            zerocopy_notifications_per_send,ip,mtu_bytes,\
            socket_buffer_bytes,receive_size_bytes,reap_batch,uring_depth,uring_batch,\
            rx_rearms,rx_ring_enobufs,host";
        for (run, _) in [fixture::run(), fixture::whole()] {
            let text = arms(std::slice::from_ref(&run));
            assert_eq!(text.lines().next(), Some(format!("{PROMISED},{FURTHER}").as_str()));
        }
    }

    /// The value of a column in a line.
    fn value<'a>(text: &'a str, line: &'a str, column: &str) -> String {
        let header = parse(text.lines().next().expect("a header"));
        let at = header.iter().position(|name| name == column).expect("a column");
        parse(line)[at].clone()
    }

    #[test]
    fn zero_copy_pmu_and_latency_columns_are_filled_where_there_is_something() {
        let (run, _) = fixture::whole();
        let text = arms(std::slice::from_ref(&run));
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
        let head: Vec<String> =
            slices(std::slice::from_ref(&run)).lines().take(2).map(String::from).collect();
        insta::assert_snapshot!(head.join("\n"), @"
        run,pass,position,seq,round,kind,arm,primitive,receiver,fields,iovec,working_set,topology,mode,message_bytes,threads,isolated,time_ns,all_active_ns,tx_messages,tx_bytes,tx_calls,tx_cpu_ns,tx_voluntary_switches,tx_involuntary_switches,tx_migrations,tx_minor_faults,tx_major_faults,tx_retransmits,tx_softirq_ticks,rx_messages,rx_bytes,rx_calls,rx_time_ns,rx_cpu_ns,rx_voluntary_switches,rx_involuntary_switches,rx_migrations,rx_minor_faults,rx_major_faults,rx_retransmits,rx_softirq_ticks,tx_zerocopy_sends,tx_zerocopy_completions,tx_zerocopy_copied,tx_zerocopy_enobufs,tx_cycles_user,tx_cycles_kernel,tx_instructions_user,tx_instructions_kernel,tx_l1d_loads,tx_l1d_misses,tx_llc_references,tx_llc_misses,rx_cycles_user,rx_cycles_kernel,rx_instructions_user,rx_instructions_kernel,rx_l1d_loads,rx_l1d_misses,rx_llc_references,rx_llc_misses,tx_run_delay_ns,tx_branches,tx_branch_misses,tx_dtlb_loads,tx_dtlb_misses,tx_stalled_cycles_frontend,tx_stalled_cycles_backend,tx_perf_task_clock_ns,tx_perf_context_switches,tx_perf_migrations,tx_perf_minor_faults,tx_perf_major_faults,tx_sys_enter,tx_skb_copy_datagram_iovec,tx_tcp_retransmit_skb,tx_sched_switch,tx_cpu_clock_ns,tx_cpu_context_switches,rx_run_delay_ns,rx_branches,rx_branch_misses,rx_dtlb_loads,rx_dtlb_misses,rx_stalled_cycles_frontend,rx_stalled_cycles_backend,rx_perf_task_clock_ns,rx_perf_context_switches,rx_perf_migrations,rx_perf_minor_faults,rx_perf_major_faults,rx_sys_enter,rx_skb_copy_datagram_iovec,rx_tcp_retransmit_skb,rx_sched_switch,rx_cpu_clock_ns,rx_cpu_context_switches,tx_segments_out,rx_segments_out,rx_mapped_bytes,tx_zerocopy_notifications,rx_rearms,rx_ring_enobufs,ip,mtu_bytes,socket_buffer_bytes,receive_size_bytes,reap_batch,uring_depth,uring_batch,role,unused,host
        4f1c09ab,1,0,0,0,discarded,send_staged,send_staged,recv,8,per-message,hot,loopback,stream,64,1,false,1126827,1126827,1000,64000,1000,1093022,3,1,0,0,0,0,,1000,64000,1000,1126827,687364,3,1,0,0,0,,,,,,,,,,,,,,,,,,,,,,,5465,,,,,,,,,,,,,,,,,,5465,,,,,,,,,,,,,,,,,,,,,,,,ipv4,,524288,131072,,1,1,baseline,,
        ");
        let cells = cells(std::slice::from_ref(&run), std::slice::from_ref(&analysis));
        let head: Vec<&str> = cells.lines().take(3).collect();
        insta::assert_snapshot!(head.join("\n"), @"
        run,study,arm,primitive,role,receiver,fields,iovec,working_set,topology,mode,message_bytes,threads,status,reason,baseline,trials_started,trials_used,n,ratio,ratio_low,ratio_high,ratio_simultaneous_low,ratio_simultaneous_high,ratio_sd_ln,total_ratio,tail,delta,indicative,verdict,verdict_reason,trials_needed,isolated_ratio,goodput_bits_per_s,goodput_low_bits_per_s,goodput_high_bits_per_s,ns_per_message,ns_per_message_low,ns_per_message_high,ns_per_byte,tx_cpu_ns_per_byte,rx_cpu_ns_per_byte,tx_calls_per_message,context_switches_per_message,cycles_per_byte,tx_cycles_per_byte,rx_cycles_per_byte,l1d_misses_per_kib,llc_references_per_kib,llc_misses_per_kib,softirq_ns_per_byte,copies_sender,copies_end_to_end,zerocopy_sends,zerocopy_completions,zerocopy_copied_share,zerocopy_enobufs,latency_samples,latency_mean_ns,latency_p50_ns,latency_p50_low_ns,latency_p50_high_ns,latency_p99_ns,latency_p99_low_ns,latency_p99_high_ns,latency_p999_ns,branch_misses_per_kib,dtlb_misses_per_kib,stalled_frontend_per_cycle,stalled_backend_per_cycle,run_delay_ns_per_message,tx_messages_per_call,tx_segments_per_message,rx_mapped_share,zerocopy_notifications_per_send,ip,mtu_bytes,socket_buffer_bytes,receive_size_bytes,reap_batch,uring_depth,uring_batch,rx_rearms,rx_ring_enobufs,cpu_ratio,cpu_ratio_low,cpu_ratio_high,cpu_ratio_simultaneous_low,cpu_ratio_simultaneous_high,host
        4f1c09ab,net,send_staged,send_staged,baseline,recv,8,per-message,hot,loopback,stream,64,1,ok,,send_staged,13,12,12,,,,,,,,,0.03,false,,,,,463301315.7910912,447383333.5908642,479219297.9913182,1107.9998735715108,1070.9796758812784,1145.0200712617432,17.312498024554856,16.793123083818205,10.56062379497846,1.0,0.022159997471430215,,,,,,,,2.0,3.0,,,,,,,,,,,,,,,,,,8.753199001214933,1.0,,,,ipv4,,524288,131072,,1,1,,,,,,,,
        4f1c09ab,net,send,send,compared,recv,8,per-message,hot,loopback,stream,64,1,ok,,send_staged,13,12,12,1.0619986558521342,1.0510895515572685,1.0730209841404645,1.0456770944817653,1.0785749740369848,0.016258230024362857,1.0619986558521342,false,0.03,false,FASTER,simultaneous 95 % interval 1.046 to 1.079 is above 1.030,,,492150845.2029243,473592957.93541306,510708732.47043556,1043.5638899811038,1005.7582312483399,1081.3695487138675,16.305685780954747,15.816515207526107,9.946468326382394,1.0,0.020871277799622074,,,,,,,,1.0,2.0,,,,,,,,,,,,,,,,,,8.24415473085072,1.0,,,,ipv4,,524288,131072,,1,1,,,,,,,,
        ");
    }
}
