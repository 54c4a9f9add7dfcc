//! Whole files: planted rows, each error of published comparisons that a gate
//! can see, and what perf prints.

use super::*;

const PLANTED: &str = include_str!("../fixtures/planted.csv");
const PLANTED_FILES: &str = include_str!("../fixtures/planted_files.csv");
const PLANTED_SERVER: &str = include_str!("../fixtures/planted_server.csv");
const PERF_IMPOSSIBLE: &str = include_str!("../fixtures/perf_impossible.txt");
const PERF_POSSIBLE: &str = include_str!("../fixtures/perf_possible.txt");

fn audited(text: &str) -> Audit {
    audit("x", text, &[], &Bounds::default()).unwrap()
}

/// What is found beyond remarks, as `severity gate`.
fn flags(text: &str) -> Vec<String> {
    let findings = audited(text).findings.into_iter();
    let flags = findings.filter(|finding| finding.severity != Severity::Remark);
    flags.map(|finding| format!("{} {}", finding.severity.word(), finding.gate)).collect()
}

/// Asserts that a gate finds this in the faulty text, and nothing in the sound
/// one.
#[track_caller]
fn check(faulty: &str, sound: &str, expect: &str) {
    let found = flags(faulty);
    assert!(found.iter().any(|flag| flag == expect), "{found:?}\n{:#?}", audited(faulty).findings);
    assert_eq!(flags(sound), [""; 0], "{:#?}", audited(sound).findings);
}

/// Lines (or columns) of rows that are called impossible and of those that
/// are flagged at all, against what the column `truth` says.
#[track_caller]
fn check_planted(text: &str) {
    let table = table::read(text, &[]).unwrap();
    let audit = audited(text);
    for row in &table.rows {
        let worst = audit
            .findings
            .iter()
            .filter(|f| f.lines.contains(&row.line) && f.severity != Severity::Remark)
            .map(|f| f.severity)
            .min();
        let called = [Severity::Impossible, Severity::Suspicious];
        let expect = called.into_iter().find(|severity| row.says(&[severity.word()]));
        assert_eq!(worst, expect, "line {}: {:#?}", row.line, audit.findings);
    }
    let planted = |word| table.rows.iter().filter(|row| row.says(&[word])).count();
    assert_eq!(
        (audit.impossible, audit.suspicious),
        (planted("impossible"), planted("suspicious"))
    );
    assert_eq!(audit.unchecked, 0);
    assert!(audit.impossible > 0 && audit.impossible < table.rows.len());
}

#[test]
fn every_planted_row_is_flagged_and_no_other() {
    check_planted(PLANTED);
    check_planted(PLANTED_FILES);
}

#[test]
fn a_server_table_has_a_model_in_each_column() {
    let audit = audited(PLANTED_SERVER);
    assert_eq!(audit.format, Format::TableByColumn);
    let found: Vec<_> = audit.findings.iter().map(|f| (f.severity, f.gate, &f.lines[..])).collect();
    // 12.78 G cycles in 7.1 s of CPU: 18 GHz.
    assert_eq!(found, [(Severity::Impossible, 1, &[5][..])], "{:#?}", audit.findings);
    assert!(audit.findings[0].text.contains("18.00 GHz"), "{}", audit.findings[0].text);
    let unknown: Vec<_> = audit.columns.iter().filter(|c| c.quantity.is_none()).collect();
    assert!(unknown.iter().any(|column| column.column == "flavour"), "{unknown:?}");
}

#[test]
fn a_perf_text_typed_by_hand_is_flagged_on_both_counts() {
    let audit = audited(PERF_IMPOSSIBLE);
    let found: Vec<(u8, usize)> = audit
        .findings
        .iter()
        .filter(|finding| finding.severity == Severity::Impossible)
        .map(|finding| (finding.gate, finding.lines[0]))
        .collect();
    assert_eq!(found, [(6, 5), (1, 8)], "{:#?}", audit.findings);
    let text = &audit.findings[0].text;
    assert!(text.contains("21.14 ms of task-clock hold 11.00, not 305.0"), "{text}");
    let text = &audit.findings[1].text;
    assert!(text.contains("0.1310 GHz, possible: 0.20 to 8.00 GHz"), "{text}");
    assert_eq!(flags(PERF_POSSIBLE), [""; 0], "{:#?}", audited(PERF_POSSIBLE).findings);
}

#[test]
fn perf_fields_are_held_to_the_same() {
    let sound = "21.14,msec,task-clock,21140000,100.00,0.904,CPUs utilized\n\
                 11,,context-switches,21140000,100.00,520.340,/sec\n\
                 52850000,,cycles,21140000,100.00,2.500,GHz\n";
    check(&sound.replace("\n11,", "\n305,"), sound, "impossible 6");
    check(&sound.replace("2.500", "0.131"), sound, "impossible 1");
    check(&sound.replace("52850000", "0"), sound, "impossible 10");
}

#[test]
fn perf_counts_that_contradict_each_other_are_flagged() {
    let line = |from: &str, to: &str| {
        assert!(PERF_POSSIBLE.contains(from), "{from}");
        PERF_POSSIBLE.replace(from, to)
    };
    check(&line("0.998 CPUs", "1.998 CPUs"), PERF_POSSIBLE, "impossible 6");
    check(&line("0.71  insn", "1.71  insn"), PERF_POSSIBLE, "impossible 6");
    check(&line("0.50% of", "5.00% of"), PERF_POSSIBLE, "impossible 6");
    check(&line("3.374 GHz", "2.374 GHz"), PERF_POSSIBLE, "impossible 6");
    check(&line("(83.31%)", "(3.31%)"), PERF_POSSIBLE, "suspicious 10");
    check(
        &line("0.408913000 seconds sys", "2.408913000 seconds sys"),
        PERF_POSSIBLE,
        "suspicious 6",
    );
    check(&line("      cycles   ", "      cpu_core/cycles/   "), PERF_POSSIBLE, "suspicious 11");
}

/// The unit of a clock behind it, user mode only, a whole system that idles.
#[test]
fn sound_texts_of_other_kinds_are_not_flagged() {
    let old = " Performance counter stats for 'make':\n\
               83723.452481      task-clock:u (msec)       #    1.004 CPUs utilized\n\
               0      context-switches:u        #    0.000 K/sec\n\
               3,228,188      page-faults:u             #    0.039 M/sec\n\
               229,570,665,834      cycles:u                  #    2.742 GHz\n\
               313,163,853,778      instructions:u            #    1.36  insn per cycle\n\
               69,704,684,856      branches:u                #  832.559 M/sec\n\
               83.409183620 seconds time elapsed\n\
               74.684747000 seconds user\n8.739217000 seconds sys\n";
    check(&old.replace("1.36", "2.36"), old, "impossible 6");
    let idle = " Performance counter stats for 'system wide':\n\
                8,013.21 msec cpu-clock    #    7.998 CPUs utilized\n\
                1,823      context-switches    #  227.499 /sec\n\
                198,231,901      cycles    #    0.025 GHz\n\
                1.001923112 seconds time elapsed\n";
    check(&idle.replace("0.025 GHz", "0.250 GHz"), idle, "impossible 6");
}

/// A rate may be named by its event, and a metric be followed by its name.
#[test]
fn metrics_that_are_named_twice_are_read() {
    let sound = " Performance counter stats for 'x':\n\
                 21.14 msec task-clock  #  0.9 CPUs  CPUs_utilized\n\
                 11 context-switches  #  520.3 cs/sec  cs_per_second\n\
                 52850000 cycles  #  2.5 GHz  cycles_frequency\n\
                 0.0235 seconds time elapsed\n";
    check(&sound.replace("\n11", "\n305"), sound, "impossible 6");
    check(&sound.replace("2.5 GHz", "2.9 GHz"), sound, "impossible 6");
    check(&sound.replace("0.9 CPUs", "1.9 CPUs"), sound, "impossible 6");
}

/// `perf stat` for 6 s around 20 ms of traffic, or around the wrong process.
#[test]
fn windows_that_hold_little_work_are_suspicious() {
    let row =
        |cpu_ms: &str| format!("size,elapsed_s,task_clock_ms,cycles\n64,6.0,{cpu_ms},52850000\n");
    check(&row("21.14"), "size,elapsed_s,task_clock_ms\n64,0.03,21.14\n", "suspicious 9");
    assert!(flags(PERF_IMPOSSIBLE).contains(&"suspicious 9".to_owned()));
    let audit = audited(PERF_IMPOSSIBLE);
    let found = audit.findings.iter().find(|finding| finding.gate == 9).unwrap();
    assert!(found.value.is_some_and(|share| share < 0.01), "{found:?}");
}

/// What a sender prints of a stream that nobody counted at the other end.
#[test]
fn bytes_that_were_sent_are_checked_where_none_are_said_to_be_received() {
    let row = |rate: &str| {
        format!("size,rx_bytes,tx_bytes,elapsed_s,throughput_gbps\n1024,0,1000000000,1.0,{rate}\n")
    };
    assert!(
        flags(&row("80.0")).iter().any(|flag| flag == "impossible 6"),
        "{:?}",
        flags(&row("80.0"))
    );
    assert!(!flags(&row("8.0")).iter().any(|flag| flag == "impossible 6"));
}

/// A sweep of one experiment: the size never reached the server.
#[test]
fn sizes_that_were_not_applied_are_suspicious() {
    let flat = "size,threads,throughput_gbps\n512,1,4.0\n16384,1,4.2\n131072,1,4.1\n";
    check(flat, "size,threads,throughput_gbps\n512,1,1.0\n131072,1,40.1\n", "suspicious 7");
}

/// Latency computed as elapsed / messages.
#[test]
fn latencies_made_from_rates_are_suspicious() {
    let derived = "size,threads,throughput_gbps,latency_us\n\
                   64,1,0.3200,1.600\n1024,1,4.096,2.000\n16384,1,26.21,5.001\n";
    let measured = derived.replace("1.600", "1.210");
    check(derived, &measured, "suspicious 4");
    let of_threads = "size,threads,throughput_gbps,latency_us\n\
                      64,4,0.3200,6.400\n1024,4,4.096,8.000\n16384,4,26.21,20.00\n";
    check(of_threads, &measured, "suspicious 4");
}

/// One `recv` timed and called message latency.
#[test]
fn a_latency_of_one_call_is_suspicious() {
    let one_call = "size,threads,throughput_gbps,p50_us\n1048576,1,8.0,60.0\n";
    check(one_call, &one_call.replace("60.0", "1100"), "suspicious 4");
}

/// A drain loop that sleeps, reported as a storm of context switches.
#[test]
fn switches_by_the_clock_are_suspicious() {
    let by_clock = "size,threads,elapsed_s,messages,cs\n\
                    64,1,1,900000,1000\n1024,1,1,600000,1010\n16384,1,1,200000,1005\n65536,1,1,60000,998\n";
    check(by_clock, &by_clock.replace("200000,1005", "200000,4005"), "suspicious 13");
}

/// Clients that are started one by one and called concurrent.
#[test]
fn connections_that_are_not_there_are_suspicious() {
    let serial = "connections,requests/s,mean latency (ms)\n100,2000,0.5\n";
    check(serial, &serial.replace("0.5", "49.0"), "suspicious 6");
}

/// Bytes of one client over the cycles of all threads.
#[test]
fn cycles_per_byte_of_other_bytes_are_impossible() {
    let row = |per_byte: &str| {
        format!(
            "size,threads,cycles,bytes,cycles/byte\n1024,4,40000000000,40000000000,{per_byte}\n"
        )
    };
    check(&row("4.00"), &row("1.00"), "impossible 6");
    // 69 million cycles for a byte: all cycles over the size of one message.
    let of_message = "size,threads,throughput_gbps,cycles_per_byte\n1024,1,10,69000000\n";
    check(of_message, &of_message.replace("69000000", "1.1"), "impossible 1");
}

/// Labels swapped between cached and uncached.
#[test]
fn a_cold_row_that_is_faster_is_suspicious() {
    let rows = |cold: &str, warm: &str| {
        format!("state,block,rate_MiB/s\ncold,4096,{cold}\nwarm,4096,{warm}\n")
    };
    check(&rows("9000", "2000"), &rows("2000", "9000"), "suspicious 8");
}

/// Counts of one kind of core, the other dropped.
#[test]
fn a_kind_of_core_that_is_missing_is_suspicious() {
    let both = "size,cpu_core/cycles/,cpu_atom/cycles/,cpu_time_ms\n64,3000000000,40000000,1000\n";
    let one = "size,cpu_core/cycles/,cpu_time_ms\n64,3000000000,1000\n";
    check(one, both, "suspicious 11");
    let added = both.replace("3000000000,40000000", "9300000000,8700000000");
    check(&added, both, "impossible 1");
}

/// A load generator that did not reach what it offered.
#[test]
fn an_offer_that_was_not_reached_is_suspicious() {
    let row =
        |achieved: &str| format!("connections,offered_rps,achieved_rps\n64,10000,{achieved}\n");
    check(&row("9000"), &row("9950"), "suspicious 15");
}

#[test]
fn bounds_that_are_given_are_held() {
    let text = "size,threads,throughput_gbps,cycles,cpu_time_s\n65536,1,48.0,50000000000,10.0\n";
    assert_eq!(flags(text), [""; 0]);
    let flags = |bounds: &Bounds| {
        let findings = audit("x", text, &[], bounds).unwrap().findings;
        findings.iter().map(|finding| finding.gate).collect::<Vec<_>>()
    };
    assert_eq!(flags(&Bounds { clock_max_hz: Some(4e9), ..Bounds::default() }), [1]);
    assert_eq!(flags(&Bounds { link_bytes_per_s: Some(5e9), ..Bounds::default() }), [3]);
    assert_eq!(flags(&Bounds { memory_bytes_per_s: Some(5e9), ..Bounds::default() }), [2]);
    let slow_calls = Bounds { empty_call_ns: Some(20_000.0), ..Bounds::default() };
    assert_eq!(flags(&slow_calls), [3]);
}

#[test]
fn files_that_hold_nothing_say_so() {
    let error = |text: &str| audit("x", text, &[], &Bounds::default()).unwrap_err();
    assert_eq!(error(""), AuditError::NoTable);
    assert_eq!(error("hello\n"), AuditError::NoTable);
    assert!(matches!(error("a,b\n1,2\n"), AuditError::NothingMapped { .. }));
    let files = [("x".to_owned(), "size,cycles\n64,1\n".to_owned())];
    let lost = ["threads=T".parse::<Mapping>().unwrap()];
    let refused = audit_all(&files, &lost, &Bounds::default()).unwrap_err();
    assert!(refused.error.to_string().contains("no column `T`; there are: size, cycles"));
}

#[test]
fn mappings_are_refused_with_what_there_is() {
    let refused = |text: &str| text.parse::<Mapping>().unwrap_err();
    assert!(refused("threads").contains("is not OURS=THEIRS"));
    assert!(refused("thread=T").contains("did you mean `threads`?"));
    assert!(refused("latency_mean=L").contains("needs its unit"));
    assert!(refused("latency_mean:GB=L").contains("base unit is ns"));
}

/// No column has the bytes: messages and their size say how many there were.
#[test]
fn a_rate_is_held_against_messages_and_their_size() {
    let sound = "size,messages,time_s,throughput_gbps\n1024,1000000,1.0,8.192\n";
    check(&sound.replace("8.192", "99"), sound, "impossible 6");
    assert_eq!(flags(&sound.replace("1000000", "0")), [""; 0]);
}

#[test]
fn what_enters_no_kernel_is_cheaper_than_a_call() {
    let row = |call: &str| format!("call,calls,time_ns,threads\n{call},10000,35055,1\n");
    check(&row("getppid"), &row("function"), "impossible 3");
    check(&row("functional"), &row("clock_gettime_vdso"), "impossible 3");
}

#[test]
fn the_text_names_what_was_not_checked() {
    let text = "mode,size,threads,throughput_gbps,flavour,latency\nsend,64,1,48.0,3,5\n";
    let files = [("net.csv".to_owned(), text.to_owned())];
    let audits = audit_all(&files, &[], &Bounds::default()).unwrap();
    insta::assert_snapshot!(text::render(&audits, 100), @r#"
    net.csv: table, a row per measurement, 1 row: 1 impossible, 0 suspicious, 0 pass
      impossible line 2 (send, size 64, threads 1): gate 3 (cost of a call): throughput_gbps 48.0, size
        64: 10.68 ns per message and thread, and a call takes 14.00 at least
      read: size = message_bytes (taken to be in B), threads, throughput_gbps = throughput
      labels: mode
      not read, so not checked: flavour (name not known); latency (latency_mean without a unit: say
        which with --map latency_mean:us="latency")
      gates that had their numbers (how often): 2 copy bandwidth (1), 3 cost of a call (1), 6 nothing is
        negative (1)

    Bounds (defaults; set yours with the option shown): lowest clock 0.20 GHz (--clock-min), highest
      clock 8.00 GHz (--clock-max), copying 200 GB/s per thread (--memory-bandwidth), an empty call 20
      ns, 70% of which is required (--call-cost), link none (--link), CPUs two per thread at most
      (--cpus).
    "#);
}

proptest::proptest! {
    #[test]
    fn nothing_panics(text in "[\\PC\n\t]{0,160}") {
        let _ = audit("x", &text, &[], &Bounds::default());
    }

    #[test]
    fn tables_of_any_numbers_do_not_panic(
        cells in proptest::collection::vec("(-?[0-9]{1,18}(\\.[0-9]{1,4})?|0|)", 30..31),
    ) {
        let header = "size,threads,elapsed_s,bytes,Gbps,p50_us,p99_us,cycles,cs,cpu_time_s";
        let rows: Vec<String> = cells.chunks(10).map(|row| row.join(",")).collect();
        let read = audit("x", &format!("{header}\n{}\n", rows.join("\n")), &[], &Bounds::default());
        for finding in read.into_iter().flat_map(|audit| audit.findings) {
            proptest::prop_assert!(!finding.text.contains("NaN"), "{finding:?}");
        }
    }
}

/// What perf 6.1 printed in a guest without a PMU: nothing in it is impossible.
#[test]
fn texts_of_a_real_perf_are_read() {
    for (text, format, counters) in [
        (include_str!("../fixtures/perf_6.1/text.txt"), Format::PerfStat, 8),
        (include_str!("../fixtures/perf_6.1/repeated.txt"), Format::PerfStat, 8),
        (include_str!("../fixtures/perf_6.1/system_wide.txt"), Format::PerfStat, 8),
        (include_str!("../fixtures/perf_6.1/fields.txt"), Format::PerfStatFields, 8),
        (include_str!("../fixtures/perf_6.1/fields_per_cpu.txt"), Format::PerfStatFields, 16),
        (include_str!("../fixtures/perf_6.1/fields_intervals.txt"), Format::PerfStatFields, 24),
    ] {
        let audit = audited(text);
        assert_eq!((audit.format, audit.rows, audit.impossible), (format, counters, 0), "{text}");
        assert!(audit.passed >= 3, "{text}");
        assert!(audit.notes.iter().any(|note| note.contains("not supported: cycles")), "{text}");
    }
}

#[test]
fn texts_of_perf_that_are_not_read_are_named() {
    for (text, option) in [
        (include_str!("../fixtures/perf_6.1/per_cpu.txt"), "-A"),
        (include_str!("../fixtures/perf_6.1/intervals.txt"), "-I"),
        (include_str!("../fixtures/perf_6.1/json.txt"), "-j"),
    ] {
        let error = audit("x", text, &[], &Bounds::default()).unwrap_err();
        assert_eq!(error, AuditError::PerfOption { option });
        assert!(error.to_string().contains("with -x,"), "{error}");
    }
}

/// Two things that one word of ours covers, such as transactions and the queries in them.
#[test]
fn one_quantity_under_two_names_may_be_two_things() {
    check("requests/s,requests/s\n1000,20000\n", "threads,tps,qps\n8,1000,20000\n", "impossible 6");
    let both = "device,Read speed (MB/s),Write speed (MB/s)\nnvme,3500,1200\n";
    check(&both.replace("Write", "Read"), both, "impossible 6");
}

/// What `/usr/bin/time` prints has two decimals.
#[test]
fn rounding_is_no_finding() {
    let time = |digits| format!("cycles,user (s),sys (s)\n81000000,{digits}\n");
    check(&time("0.0000,0.0100"), &time("0.00,0.01"), "impossible 1");
    let loaded =
        |latency| format!("connections,requests/s,mean latency (ms)\n8,100000,{latency}\n");
    check(&loaded("0.100"), &loaded("0.1"), "suspicious 6");
    let rising = |least| format!("min latency (ms),p50 (us)\n{least},98\n");
    check(&rising("0.100"), &rising("0.1"), "impossible 6");
    let busy = |seconds| format!("cpus,cpu time (s),elapsed (s)\n1,{seconds},0.1\n");
    check(&busy("0.20"), &busy("0.1"), "impossible 6");
}

#[test]
fn a_file_need_not_be_read_once() {
    let read = |mode| format!("mode,bs,size,bw (MB/s),runtime (s)\n{mode},4k,100G,200,10\n");
    check(&read("read"), &read("randread"), "suspicious 8");
    assert_eq!(flags(&read("read")).len(), 1);
}

#[test]
fn the_time_of_each_thread_goes_with_the_rate_of_all() {
    let each = |ns| format!("threads,time per op (ns),ops/s\n8,{ns},10000000\n");
    check(&each("300"), &each("800"), "impossible 6");
}
