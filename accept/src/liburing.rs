//! `uring_send_zc_fixed` beside liburing's own example of zero-copy sends,
//! examples/send-zerocopy.c, both over UDP into a device that drops everything,
//! alternating in random order.
//!
//! The example comes as the source package of the distribution, from where apt
//! has liburing-dev, into the scratch directory. Equal are: a registered buffer,
//! datagrams of 64 000 bytes, one request in flight, the device's kind, its MTU
//! and its missing queue, the CPU, `SO_SNDBUF`. Different, as each of the two is
//! written: the example's ring has `IORING_SETUP_COOP_TASKRUN`, a registered
//! file and a registered ring, and it sends one buffer all the time.

use std::path::{Path, PathBuf};

use super::iperf::Median;
use super::paired::{PAIRS, Paired};
use super::process::{Job, need, own_user};
use super::{Bench, Judged, Outcome, results};

/// What the lower end of the interval of the paired ratios must reach: no more
/// than δ = 3 % below the example.
const RATIO_MIN: f64 = 0.97;

/// Time that the example is told to send for, and what it sends for beyond that
/// (`cfg_runtime_ms`). It divides what it sent by the first alone, so its own
/// rate is too high; here it is divided by both.
const TOLD_S: f64 = 1.0;
const BEYOND_S: f64 = 0.2;

const OURS: &str = "run net --network sink --fields 1 --threads 1 --methods \
                    uring_send_zc_fixed --baseline uring_send_zc_fixed --sizes 64000 --sequential-time 1s \
                    --passes 1 --cpus 0,1 --socket-buffer 2MiB --json";

pub(crate) fn check(bench: &Bench) -> Judged {
    if own_user() != Ok(0) {
        return Ok(Outcome::Skip("a named network namespace needs root".to_owned()));
    }
    for (program, package) in [("gcc", "gcc"), ("make", "make"), ("ip", "iproute2")] {
        if let Err(missing) = need(program, package) {
            return Ok(Outcome::Skip(missing));
        }
    }
    let (version, example) = match build(&bench.home("liburing")?) {
        Ok(built) => built,
        Err(why) => return Ok(Outcome::Skip(format!("no liburing to compare with: {why}"))),
    };
    let namespace = Namespace::with_sink()?;
    let pairs = Paired::of(PAIRS, &|| ours(bench), &|| namespace.send(&example, 1), "datagrams/s")?;
    let batches: Vec<f64> =
        (0..3).map(|_| namespace.send(&example, 8)).collect::<Result<_, _>>()?;
    let (ratio, [ours, theirs]) = (&pairs.ratio, pairs.medians());
    let evidence = format!(
        "median of {PAIRS} paired ratios ours/send-zerocopy {:.3}, {:.1} % interval {:.3} to {:.3} \
         (order statistics); medians {:.0} and {:.0} datagrams/s of 64000 B over {}; liburing \
         {version}, `{}`, its count over the {:.1} s that it sends for (it divides by {TOLD_S:.0})\n\
         for information, 8 requests in flight (its default), median of 3: {:.0} datagrams/s",
        ratio.value,
        100.0 * ratio.coverage,
        ratio.low,
        ratio.high,
        ours,
        theirs,
        namespace.kind,
        arguments(1).join(" "),
        TOLD_S + BEYOND_S,
        Median::of(&batches).value,
    );
    let passes = ratio.low >= RATIO_MIN;
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}

/// Messages per second of our arm.
fn ours(bench: &Bench) -> Result<f64, String> {
    let args: Vec<&str> = OURS.split_whitespace().collect();
    let answer = bench.iolens_json("liburing", &args, 2)?;
    let arms = answer.json["cells"].as_array();
    let row = arms.into_iter().flatten().find(|row| row["role"] == "baseline");
    let row = row.ok_or("the JSON of the run has no baseline")?;
    if row["zerocopy_copied_share"] != 0.0 {
        return Err(format!(
            "{}: the copied share is {}, so nothing was sent without a copy",
            results::cell_words(row),
            row["zerocopy_copied_share"]
        ));
    }
    let ns = row["ns_per_message"].as_f64();
    ns.map(|ns| 1e9 / ns).ok_or_else(|| "the JSON of the run has no time per message".to_owned())
}

/// What the example is told.
fn arguments(requests: u32) -> Vec<String> {
    let told = format!("-4 -D 192.0.2.2 -p 9 -s 64000 -z 1 -b 1 -n {requests} -t {TOLD_S:.0} udp");
    told.split_whitespace().map(str::to_owned).collect()
}

/// Fetches and builds the example; its version and where it is.
fn build(directory: &Path) -> Result<(String, PathBuf), String> {
    let (list, lists) = (directory.join("liburing.list"), directory.join("lists"));
    std::fs::create_dir_all(lists.join("partial"))
        .and_then(|()| std::fs::write(&list, format!("{}\n", source()?)))
        .map_err(|e| format!("cannot write below {}: {e}", directory.display()))?;
    let apt = |args: &[&str]| {
        let options = [
            format!("Dir::Etc::sourcelist={}", list.display()),
            "Dir::Etc::sourceparts=/dev/null".to_owned(),
            format!("Dir::State::lists={}", lists.display()),
            "Dir::Cache::pkgcache=".to_owned(),
            "Dir::Cache::srcpkgcache=".to_owned(),
        ];
        let options: Vec<&str> = options.iter().flat_map(|o| ["-o", o.as_str()]).collect();
        let job = Job::new("apt-get").args(&options).args(args).directory(directory);
        job.limit_minutes(5).run()?.success()
    };
    apt(&["update"])?;
    apt(&["source", "--download-only", "liburing"])?;
    let script = "tar xf liburing_*.orig.tar.?z && mv liburing-*/ source && cd source && \
                  ./configure && make -C src && make -C examples send-zerocopy";
    let job = Job::new("sh").args(&["-c", script]).directory(directory);
    job.limit_minutes(5).run()?.success()?;
    let names = std::fs::read_dir(directory).map_err(|e| e.to_string())?;
    let names = names.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let version = names
        .filter_map(|name| Some(name.strip_prefix("liburing_")?.strip_suffix(".dsc")?.to_owned()));
    Ok((
        version.max().ok_or("apt brought no .dsc")?,
        directory.join("source/examples/send-zerocopy"),
    ))
}

/// The line of a list of sources that has liburing's: where its package comes
/// from, as `apt-cache madison` says.
fn source() -> std::io::Result<String> {
    let asked = Job::new("apt-cache").args(&["madison", "liburing-dev"]).run();
    let said = asked.map_err(std::io::Error::other)?.stdout();
    source_line(&said)
        .ok_or_else(|| std::io::Error::other("apt knows no liburing-dev: `apt-get update` helps"))
}

/// ` liburing-dev | 2.3-3 | http://deb.debian.org/debian bookworm/main amd64 Packages`
fn source_line(madison: &str) -> Option<String> {
    let origin = madison.lines().next()?.split('|').nth(2)?;
    let mut words = origin.split_whitespace();
    let (archive, place) = (words.next()?, words.next()?);
    let (suite, component) = place.rsplit_once('/')?;
    Some(format!("deb-src {archive} {suite} {component}"))
}

/// A network namespace of this check, removed with it.
struct Namespace {
    name: String,
    /// The kind of the device in it.
    kind: &'static str,
}

impl Namespace {
    /// One with a device that drops everything, as the topology `sink` has.
    fn with_sink() -> Result<Namespace, String> {
        let name = format!("iolens-accept-{}", std::process::id());
        ip(&["netns", "add", &name])?;
        // From here on it is removed whatever happens.
        let mut namespace = Namespace { name, kind: "dummy" };
        let add = |kind| namespace.ip(&["link", "add", "sink", "type", kind]);
        if add("dummy").is_err() {
            add("ifb")?;
            namespace.kind = "ifb";
        }
        namespace.ip(&["address", "add", "192.0.2.1/24", "dev", "sink"])?;
        namespace.ip(&["link", "set", "sink", "mtu", "65535", "up"])?;
        let unqueued =
            ["-n", &namespace.name, "qdisc", "replace", "dev", "sink", "root", "noqueue"];
        Job::new("tc").args(&unqueued).run()?.success()?;
        Ok(namespace)
    }

    fn ip(&self, args: &[&str]) -> Result<(), String> {
        ip(&[&["-n", self.name.as_str()], args].concat())
    }

    /// Datagrams per second of the example with so many requests in flight.
    fn send(&self, example: &Path, requests: u32) -> Result<f64, String> {
        let told = arguments(requests);
        let told: Vec<&str> = told.iter().map(String::as_str).collect();
        let job = Job::new("ip")
            .args(&["netns", "exec", &self.name, "taskset", "-c", "0"])
            .args(&[&example.display().to_string()])
            .args(&told);
        let finished = job.limit_minutes(1).run()?.success()?;
        let said = finished.stderr_lines().iter().find_map(|(_, line)| datagrams(line));
        let sent = said.ok_or("send-zerocopy did not say what it sent")?;
        Ok(sent / (TOLD_S + BEYOND_S))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if let Err(why) = ip(&["netns", "delete", &self.name]) {
            eprintln!("   {why}");
        }
    }
}

fn ip(args: &[&str]) -> Result<(), String> {
    Job::new("ip").args(args).run()?.success().map(|_| ())
}

/// `tx=12345 (MB=753), tx/s=12345 (MB/s=753)`: the first number.
fn datagrams(line: &str) -> Option<f64> {
    line.strip_prefix("tx=")?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sources_are_where_the_package_is() {
        let said = " liburing-dev |    2.3-3 | http://deb.debian.org/debian bookworm/main amd64 \
                    Packages\n";
        let line = "deb-src http://deb.debian.org/debian bookworm main";
        assert_eq!(source_line(said).as_deref(), Some(line));
        let updates =
            "liburing-dev | 2 | http://host/x stable-security/updates/main amd64 Packages";
        let line = "deb-src http://host/x stable-security/updates main";
        assert_eq!(source_line(updates).as_deref(), Some(line));
        assert_eq!(source_line(""), None);
    }

    #[test]
    fn the_example_says_what_it_sent() {
        assert_eq!(datagrams("tx=1200 (MB=73), tx/s=1200 (MB/s=73)"), Some(1200.0));
        assert_eq!(datagrams("Connection failure"), None);
    }
}
