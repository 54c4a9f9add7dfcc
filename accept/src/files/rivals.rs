//! Reading and copying files beside fio and google-benchmark, in pairs of runs.

use crate::pairs::{Count, PAIRS, Paired, pair};
use crate::prelude::*;

/// Most that two harnesses may differ by.
const AGREEMENT: std::ops::RangeInclusive<f64> = 0.95..=1.05;

/// How many times the file is read in one run of a pair: a second or more.
const LOOPS: u64 = 10;

/// Beside fio: on a shared machine one pair is 8 % off. The width is half of what the two may
/// differ by, so that a ratio of 1.03 can be seen to agree; some 110 are narrow enough on a quiet
/// machine.
const FIO_PAIRS: Count = Count::until(0.025, 201);

/// What our rate of small reads is to be of fio's.
const SMALL_MIN: f64 = 1.3;

/// Pairs of copies that take a tenth of a second each: what the machine does meanwhile is the same
/// for both of a pair. At 4 KiB ours is 2 to 3 % faster: with a third of these the interval is too
/// wide to tell that from 5 %.
const COPY_PAIRS: Count = Count::of(303);

const GIB: u64 = 1 << 30;

/// All of an interval says that both agree.
fn agree(check: &Check, what: &str, paired: &Paired) {
    check.note(what, &paired.words);
    check.within(format!("{what}, lower end"), paired.ratio.low, AGREEMENT);
    check.within(format!("{what}, upper end"), paired.ratio.high, AGREEMENT);
}

fn name(bytes: u64) -> String {
    format!("file-{bytes}")
}

/// A bench with a file of ours of a size, which is in the page cache; two lines use it.
fn file(bench: &Bench, bytes: u64) -> Res<Bench> {
    let (bench, name, count) = (bench.room("files")?, name(bytes), bytes >> 20);
    if !bench.path(&name).exists() {
        bench.run(format!("file write {name} --block-size 1MiB --count {count} --sync fsync"))?;
    }
    Reading { bench: &bench, file: bytes, block: 1 << 20, bytes, loops: 1 }.ours(false)?;
    Ok(bench)
}

/// The first `bytes` of a file, read so many times on one clock.
struct Reading<'a> {
    bench: &'a Bench,
    file: u64,
    block: u64,
    bytes: u64,
    loops: u64,
}

impl Reading<'_> {
    /// What both do is the call. Without what each does between two calls: fio keeps its books and
    /// reads the clock there even with `gtod_reduce`, 7 to 9 % of its time at 64 KiB, in caches
    /// that the copy has just emptied (its engine `null` shows a third of it). In samples of both,
    /// the copy of a block takes the same time.
    fn ours(&self, in_the_kernel: bool) -> Res<f64> {
        let Reading { bench, file, block, bytes, loops } = self;
        let (file, count) = (name(*file), bytes.div_ceil(*block));
        let read = bench.json(format!(
            "file read {file} --block-size {block} --count {count} --loops {loops} --engine pread \
             --json"
        ))?;
        // A part that is not known is no number: it fails here, and is not taken for none.
        let user = match in_the_kernel {
            true => read.number(".cpu_user_ns / .time_ns")?,
            false => 0.0,
        };
        Ok(rate(read.number(".bytes_per_s")?, in_the_kernel, user))
    }

    /// fio's psync engine over as much of the same file, as often, without a clock reading for each
    /// block. Its buffer begins with a page, as ours, dd's and that of every direct read does. Left
    /// to malloc it begins 16 bytes behind, and copies out of the page cache are some 8 % faster:
    /// docs/journal, where-a-buffer-begins.
    fn fio(&self, in_the_kernel: bool) -> Res<f64> {
        let Reading { bench, file, block, bytes, loops } = self;
        let (file, all) = (name(*file), bytes * loops);
        let job = format!(
            "fio --filename={file} --bs={block} --size={bytes} --io_size={all} --name=read \
             --rw=read --ioengine=psync --readonly --invalidate=0 --gtod_reduce=1 --thread \
             --output-format=json --iomem_align=4096"
        );
        let json = bench.at_home(Job::of(&job)).json()?;
        let job = json.at("jobs/0");
        if job.int("read/io_bytes") != all {
            bail!("fio read {} of {all} bytes", job.int("read/io_bytes"));
        }
        Ok(rate(job.number(".read.bw_bytes")?, in_the_kernel, job.number(".usr_cpu / 100")?))
    }

    fn pair(&self, count: Count, in_the_kernel: bool) -> Res<Paired> {
        pair(count, "GiB/s", || self.ours(in_the_kernel), || self.fio(in_the_kernel))
    }
}

/// In GiB/s; of the kernel alone without the time in user code.
fn rate(bytes_per_s: f64, in_the_kernel: bool, user_share: f64) -> f64 {
    let share = if in_the_kernel { 1.0 - user_share } else { 1.0 };
    bytes_per_s / share / GIB as f64
}

pub fn fio(bench: &Bench) -> Res {
    let bench = &file(bench, GIB)?;
    for (name, block) in [("64 KiB", 64 << 10), ("1 MiB", 1 << 20)] {
        let reading = Reading { bench, file: GIB, block, bytes: GIB, loops: LOOPS };
        let what = format!("{name}, less each one's time in user code");
        agree(bench, &what, &reading.pair(FIO_PAIRS, true)?);
        bench.note(format!("{name}, with it, not judged"), reading.pair(PAIRS, false)?.words);
    }
    Ok(())
}

pub fn fio_small(bench: &Bench) -> Res {
    let bench = &file(bench, GIB)?;
    let reading = Reading { bench, file: GIB, block: 512, bytes: 256 << 20, loops: 8 };
    reading.pair(PAIRS, false)?.at_least(bench, "512 B", SMALL_MIN);
    Ok(())
}

pub fn google_benchmark(bench: &Bench) -> Res {
    const BYTES: u64 = 128 << 20;
    let bench = &file(bench, BYTES)?;
    for (name, block) in [("4 KiB", 4096), ("256 KiB", 256 << 10)] {
        let (ours, theirs) =
            (|| copied(bench, BYTES, block), |behind| witness(bench, BYTES, block, behind));
        agree(bench, name, &pair(COPY_PAIRS, "GiB/s", ours, || theirs(0))?);
        // Where malloc puts a large buffer.
        let malloc = pair(PAIRS, "GiB/s", ours, || theirs(16))?;
        bench.note(format!("{name}, its buffer 16 B behind a page, not judged"), malloc.words);
    }
    Ok(())
}

/// The witness's copy into a new file: bytes over wall time, of one copy as ours is.
fn witness(bench: &Bench, bytes: u64, block: u64, behind: u64) -> Res<f64> {
    let file = name(bytes);
    let words = format!(
        "--src={file} --dst=out --block={block} --behind={behind} --benchmark_min_time=0 \
         --benchmark_format=json"
    );
    let json = bench.at_home(Job::new(bench.peers.join("copy")).words(&words)).json()?;
    Ok(json.number(".benchmarks[0].bytes_per_second")? / GIB as f64)
}

/// Our copy into a new file.
fn copied(bench: &Bench, bytes: u64, block: u64) -> Res<f64> {
    let file = name(bytes);
    let copy = format!("file copy {file} out --block-size {block} --engine read_write --json");
    let copy = bench.json(&copy)?;
    fs::remove_file(bench.path("out"))?;
    Ok(copy.number(".bytes_per_s")? / GIB as f64)
}
