//! Reading and copying files beside fio and google-benchmark, in pairs of runs.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::iperf::Median;
use super::paired::{Count, PAIRS, Paired, Reached, SHORT_PAIRS};
use super::process::{Job, need};
use super::{Bench, Judged, Outcome};

/// Most that two harnesses may differ by.
const AGREEMENT: f64 = 0.05;

/// How many times the file is read in one run of a pair: a second or more.
const LOOPS: u64 = 10;

/// Width of the interval of pairs beside fio, of which one is 8 % off on a shared machine:
/// half of what the two may differ by, so that a ratio of 1.03 can be seen to agree.
const FIO_WIDTH: f64 = 0.025;

/// Pairs beside fio at most; some 110 are narrow enough on a quiet machine.
const FIO_PAIRS: usize = 201;

/// What our rate of small reads is to be of fio's.
const SMALL_MIN: f64 = 1.3;

const GIB: u64 = 1 << 30;

/// A buffer that begins with a page, as ours, dd's and that of every direct read does.
/// Left to malloc it begins 16 bytes behind, and copies out of the page cache are some
/// 8 % faster: docs/journal, where-a-buffer-begins.
const ALIGNED: &str = "--iomem_align=4096";

/// The median of paired ratios, ours over theirs, with the rates in words. Rates are in
/// bytes per second.
fn compare(
    what: &str,
    count: impl Into<Count>,
    ours: Reached<'_>,
    theirs: Reached<'_>,
) -> Result<(Median, String), String> {
    let pairs = Paired::of(count, ours, theirs, "B/s")?;
    let [ours, theirs] = pairs.medians().map(|rate| rate / GIB as f64);
    let count = pairs.count();
    let ratio = pairs.ratio;
    let words = format!(
        "{what}: median of {count} paired ratios {:.3}, {:.1} % interval {:.3} to {:.3}; medians \
         {ours:.2} and {theirs:.2} GiB/s",
        ratio.value,
        100.0 * ratio.coverage,
        ratio.low,
        ratio.high,
    );
    eprintln!("   {words}");
    Ok((ratio, words))
}

/// Whether the ratios say that both agree: all of the interval.
fn agrees(ratio: &Median) -> bool {
    1.0 - AGREEMENT <= ratio.low && ratio.high <= 1.0 + AGREEMENT
}

/// A file of ours of a size, which stays in the page cache.
pub(crate) fn file(bench: &Bench, bytes: u64) -> Result<PathBuf, String> {
    let path = bench.home("rivals")?.join(format!("file-{bytes}"));
    let name = path.display().to_string();
    let count = (bytes >> 20).to_string();
    if !path.exists() {
        let args =
            ["file", "write", &name, "--block-size", "1MiB", "--count", &count, "--sync", "fsync"];
        bench.iolens("rivals", &args)?.limit_minutes(3).run()?.success()?;
    }
    ours(bench, &path, "1MiB", GIB.min(bytes), 1)?;
    Ok(path)
}

/// Our plain reading of the first `bytes` of a file, so many times on one clock; bytes
/// per second.
fn ours(bench: &Bench, path: &Path, block: &str, bytes: u64, loops: u64) -> Result<f64, String> {
    Ok(ours_read(bench, path, block, bytes, loops)?.bytes_per_s)
}

/// What a harness reached, and what of its time it spent in code of its own.
struct Read {
    bytes_per_s: f64,
    /// 0 to 1.
    user_share: f64,
}

impl Read {
    /// The rate of what the kernel does: without the time in user code.
    fn in_the_kernel(&self) -> f64 {
        self.bytes_per_s / (1.0 - self.user_share)
    }
}

fn ours_read(
    bench: &Bench,
    path: &Path,
    block: &str,
    bytes: u64,
    loops: u64,
) -> Result<Read, String> {
    let block_bytes = bytes_of(block);
    let (name, count) = (path.display().to_string(), bytes.div_ceil(block_bytes).to_string());
    let loops = loops.to_string();
    let fixed = ["--engine", "pread", "--json"];
    let given =
        ["file", "read", &name, "--block-size", block, "--count", &count, "--loops", &loops];
    let read = bench.iolens_json("rivals", &[&given[..], &fixed].concat(), 3)?.json;
    let number = |key: &str| read[key].as_f64().ok_or_else(|| format!("the reading has no {key}"));
    Ok(Read {
        bytes_per_s: number("bytes_per_s")?,
        user_share: number("cpu_user_ns")? / number("time_ns")?,
    })
}

/// fio's psync engine over as much of the same file, as often, without a clock reading
/// for each block; bytes per second.
fn fio(path: &Path, block: &str, bytes: u64, loops: u64) -> Result<f64, String> {
    Ok(fio_read(path, block, bytes, loops)?.bytes_per_s)
}

fn fio_read(path: &Path, block: &str, bytes: u64, loops: u64) -> Result<Read, String> {
    let options = [
        format!("--filename={}", path.display()),
        format!("--bs={}", bytes_of(block)),
        format!("--size={bytes}"),
        format!("--io_size={}", bytes * loops),
    ];
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let fixed = ["--name=read", "--rw=read", "--ioengine=psync", "--readonly", "--invalidate=0"];
    let quiet = ["--gtod_reduce=1", "--thread", "--output-format=json", ALIGNED];
    let job = Job::new("fio").args(&options).args(&fixed).args(&quiet);
    let finished = job.limit_minutes(3).run()?.success()?;
    let json: Value = serde_json::from_str(&finished.stdout())
        .map_err(|e| format!("fio printed no JSON: {e}"))?;
    let job = &json["jobs"][0];
    let read = &job["read"];
    if read["io_bytes"] != bytes * loops {
        return Err(format!("fio read {} of {} bytes", read["io_bytes"], bytes * loops));
    }
    let number = |value: &Value, key: &str| {
        value[key].as_f64().ok_or_else(|| format!("fio's JSON has no {key}"))
    };
    Ok(Read { bytes_per_s: number(read, "bw_bytes")?, user_share: number(job, "usr_cpu")? / 100.0 })
}

/// Bytes of a block size as it is written here.
fn bytes_of(block: &str) -> u64 {
    match block {
        "512" => 512,
        "64KiB" => 64 << 10,
        "1MiB" => 1 << 20,
        other => unreachable!("no line has blocks of {other}"),
    }
}

/// What both do is the call, so what each does between two calls is taken off: fio keeps
/// its books and reads the clock there even with `gtod_reduce`, 7 to 9 % of its time at
/// 64 KiB, in caches that the copy has just emptied (its engine `null` shows a third of
/// it). In samples of both, the copy of a block takes the same time.
pub(crate) fn check_fio(bench: &Bench) -> Judged {
    if let Err(missing) = need("fio", "fio") {
        return Ok(Outcome::Skip(missing));
    }
    let path = file(bench, GIB)?;
    let count = Count::until(FIO_WIDTH).at_most(FIO_PAIRS);
    let mut evidence = Vec::new();
    let mut passes = true;
    for block in ["64KiB", "1MiB"] {
        let our_kernel = || Ok(ours_read(bench, &path, block, GIB, LOOPS)?.in_the_kernel());
        let their_kernel = || Ok(fio_read(&path, block, GIB, LOOPS)?.in_the_kernel());
        let what = format!("{block}, less each one's time in user code");
        let (ratio, words) = compare(&what, count, &our_kernel, &their_kernel)?;
        passes &= agrees(&ratio);
        evidence.push(words);
        let ours = || ours(bench, &path, block, GIB, LOOPS);
        let theirs = || fio(&path, block, GIB, LOOPS);
        let what = format!("for information, {block}, with it");
        evidence.push(compare(&what, PAIRS, &ours, &theirs)?.1);
    }
    let evidence = evidence.join("\n");
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}

pub(crate) fn check_small(bench: &Bench) -> Judged {
    if let Err(missing) = need("fio", "fio") {
        return Ok(Outcome::Skip(missing));
    }
    const BYTES: u64 = 256 << 20;
    const LOOPS: u64 = 8;
    let path = file(bench, GIB)?;
    let ours = || ours(bench, &path, "512", BYTES, LOOPS);
    let theirs = || fio(&path, "512", BYTES, LOOPS);
    let (ratio, words) = compare("512 B", PAIRS, &ours, &theirs)?;
    Ok(if ratio.low >= SMALL_MIN { Outcome::Pass(words) } else { Outcome::Fail(words) })
}

pub(crate) fn check_witness(bench: &Bench) -> Judged {
    if let Err(missing) = need("c++", "g++") {
        return Ok(Outcome::Skip(missing));
    }
    let home = bench.home("witness")?;
    let program = home.join("copy");
    let source = crate::root().join("witness/gbench/copy.cc");
    let (program_name, source) = (program.display().to_string(), source.display().to_string());
    let options = ["-O2", "-std=c++17", &source, "-lbenchmark", "-lpthread", "-o", &program_name];
    let built = Job::new("c++").args(&options).limit_minutes(3).run()?;
    if let Err(why) = built.success() {
        return Ok(Outcome::Skip(format!("apt-get install libbenchmark-dev: {why}")));
    }
    // A copy takes a tenth of a second. Many pairs of one copy each: what the
    // machine does meanwhile is the same for both of a pair.
    const BYTES: u64 = 128 << 20;
    // At 4 KiB ours is 2 to 3 % faster: with a third of them the interval is too wide to
    // tell that from 5 %.
    const COPY_PAIRS: usize = 3 * SHORT_PAIRS;
    let path = file(bench, BYTES)?;
    let (src, dst) = (path.display().to_string(), home.join("out").display().to_string());
    let mut evidence = Vec::new();
    let mut passes = true;
    for (name, block_bytes) in [("4KiB", 4096_u64), ("256KiB", 256 << 10)] {
        let ours = || copied(bench, &src, &dst, name);
        let theirs = |behind| witness(&program, [&src, &dst], block_bytes, behind);
        let (ratio, words) = compare(name, COPY_PAIRS, &ours, &|| theirs(0))?;
        passes &= agrees(&ratio);
        evidence.push(words);
        let what = format!("for information, {name}, its buffer {MALLOC_BEHIND} B behind a page");
        evidence.push(compare(&what, PAIRS, &ours, &|| theirs(MALLOC_BEHIND))?.1);
    }
    let evidence = evidence.join("\n");
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}

/// How far behind the beginning of a page malloc puts a large buffer.
const MALLOC_BEHIND: u64 = 16;

/// The witness's copy into a new file: bytes over wall time, of one copy as ours is.
fn witness(
    program: &Path,
    [src, dst]: [&str; 2],
    block_bytes: u64,
    behind: u64,
) -> Result<f64, String> {
    let (src, dst) = (format!("--src={src}"), format!("--dst={dst}"));
    let (block, behind) = (format!("--block-size={block_bytes}"), format!("--behind={behind}"));
    let fixed = ["--benchmark_min_time=0", "--benchmark_format=json"];
    let job = Job::new(program).args(&[&src, &dst, &block, &behind]).args(&fixed);
    let finished = job.limit_minutes(2).run()?.success()?;
    let json: Value = serde_json::from_str(&finished.stdout())
        .map_err(|e| format!("the witness printed no JSON: {e}"))?;
    let rate = &json["benchmarks"][0]["bytes_per_second"];
    rate.as_f64().ok_or_else(|| "the witness's JSON has no rate".to_owned())
}

/// Our copy into a new file.
fn copied(bench: &Bench, src: &str, dst: &str, block: &str) -> Result<f64, String> {
    let args =
        ["file", "copy", src, dst, "--block-size", block, "--engine", "read_write", "--json"];
    let copy = bench.iolens_json("witness", &args, 2)?.json;
    std::fs::remove_file(dst).map_err(|e| format!("cannot remove {dst}: {e}"))?;
    let rate = copy["bytes_per_s"].as_f64();
    rate.ok_or_else(|| format!("the copy has no rate: {copy}"))
}
