//! Texts of /proc, each by its own parser.

use iolens_sys::proc;

/// A text of /proc, given to whatever may be asked of one.
pub fn kernel(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = proc::cpu_ticks(&text, "cpu");
    let _ = proc::every_cpu(&text);
    let _ = proc::stat_number(&text, "procs_running");
    let _ = proc::pressure_some_us(&text);
    let _ = proc::sched_number(&text, "nr_switches");
    let _ = proc::io_number(&text, "read_bytes");
    let _ = proc::net_counter(&text, "TcpExt", "ListenOverflows");
    let _ = proc::run_delay_ns(&text);
    let _ = proc::process_start(&text);
}
