//! The values of a plan as users write them, in flags and in plan files alike,
//! each with its limits; and how each is written back.

pub(crate) mod asked;
pub(crate) mod load;
pub(crate) mod peer;
mod program;
mod run;
pub(crate) mod server;

pub(crate) use self::program::{external, written_external};
pub(crate) use self::run::{path, progress, run_name, seed, switch};

use std::str::FromStr;

use iolens_engine::FIELDS_MAX;
use iolens_engine::files::write::by_hand::Syncing;
use iolens_engine::server::Close;
use iolens_model::axes::{Counting, Iovec, IpVersion, Mode, Topology, WorkingSet};
use iolens_model::copy::CopySync;
use iolens_model::file::{CacheState, Consumer, Destination, DropMode, Pattern};
use iolens_model::parse::{self, ParseError, nearest};
use iolens_model::plan::Passes;
use iolens_model::tune::CacheWish;
use iolens_model::tuning::RING_SENDS_MAX;
use iolens_model::units::{Bytes, Nanos};

/// A list that is one value of a flag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct List<T>(pub(crate) Vec<T>);

/// Where the ends are to stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stand {
    /// On veth where this machine permits it, on loopback elsewhere.
    Auto,
    /// There and nowhere else.
    At(Topology),
}

impl Stand {
    const ALL: [Stand; 5] = [
        Stand::Auto,
        Stand::At(Topology::Loopback),
        Stand::At(Topology::Veth),
        Stand::At(Topology::Sink),
        Stand::At(Topology::Host),
    ];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Stand::Auto => "auto",
            Stand::At(topology) => topology.word(),
        }
    }
}

/// Why a value was refused, in words.
type Parsed<T> = Result<T, String>;

/// Values that were renamed, and what they are called now.
const RENAMED: [(&str, &str); 5] = [
    ("host", "peer"),
    ("per_message", "per-message"),
    ("prepared", "prebuilt"),
    ("long", "yes"),
    ("short", "no"),
];

pub(crate) fn words(text: &str) -> Parsed<List<String>> {
    let items = parse::items(text).map_err(|e| e.to_string())?;
    Ok(List(distinct(items.into_iter().map(str::to_owned).collect())))
}

pub(crate) fn word(text: &str) -> Parsed<String> {
    let word = text.trim();
    if word.is_empty() { Err("a name must not be empty".to_owned()) } else { Ok(word.to_owned()) }
}

/// Message sizes. The largest is what the memory for rings sets, not the kernel.
pub(crate) fn sizes(text: &str) -> Parsed<List<Bytes>> {
    let sizes = parse::sizes(text).map_err(|e| e.to_string())?;
    sizes.iter().try_for_each(|&size| fits(size))?;
    Ok(List(sizes))
}

/// One message size.
pub(crate) fn size(text: &str) -> Parsed<Bytes> {
    let size = parse::size(text).map_err(|e| e.to_string())?;
    fits(size).map(|()| size)
}

fn fits(size: Bytes) -> Parsed<()> {
    const MESSAGE_BYTES_MAX: Bytes = Bytes(Bytes::GIB);
    if size <= MESSAGE_BYTES_MAX {
        return Ok(());
    }
    Err(format!(
        "a message of {size} is too large: the rings of all arms must fit memory; the largest size \
         is {MESSAGE_BYTES_MAX}"
    ))
}

/// Bytes of a block of a file: each thread has one or more buffers of it.
pub(crate) fn block_size(text: &str) -> Parsed<Bytes> {
    const BLOCK_BYTES_MAX: Bytes = Bytes(64 * Bytes::MIB);
    match parse::size(text) {
        Err(ParseError::SizeZero) => {
            Err(format!("a block of no bytes moves nothing: write 1 to {BLOCK_BYTES_MAX}"))
        }
        Err(e) => Err(e.to_string()),
        Ok(size) if size > BLOCK_BYTES_MAX => {
            Err(format!("a block of {size} is too large: the largest is {BLOCK_BYTES_MAX}"))
        }
        Ok(size) => Ok(size),
    }
}

pub(crate) fn block_count(text: &str) -> Parsed<u64> {
    parse::count(text).map_err(|e| e.to_string())
}

/// Threads that read or write one file.
pub(crate) fn file_threads(text: &str) -> Parsed<u32> {
    at_most(text, 1024, "threads").and_then(narrow)
}

/// Threads or processes of a server.
pub(crate) fn workers(text: &str) -> Parsed<u32> {
    at_most(text, 1024, "threads or processes").and_then(narrow)
}

/// Connections that wait to be taken: an int of listen(2), of which the kernel keeps
/// what net.core.somaxconn allows.
pub(crate) fn backlog(text: &str) -> Parsed<u32> {
    at_most(text, 1 << 24, "waiting connections").and_then(narrow)
}

pub(crate) fn close(text: &str) -> Parsed<Close> {
    lookup(text.trim(), "side", &[Close::Client, Close::Server], Close::word)
}

/// Readings of a file, one after the other.
pub(crate) fn loops(text: &str) -> Parsed<u32> {
    at_most(text, 1_000_000, "loops").and_then(narrow)
}

/// Requests of a thread that are under way at once.
pub(crate) fn depth(text: &str) -> Parsed<u32> {
    at_most(text, 1024, "requests at once").and_then(narrow)
}

pub(crate) fn syncing(text: &str) -> Parsed<Syncing> {
    lookup(text.trim(), "time to sync", Syncing::ALL, Syncing::word)
}

pub(crate) fn pattern(text: &str) -> Parsed<Pattern> {
    lookup(text.trim(), "order of blocks", Pattern::ALL, Pattern::word)
}

pub(crate) fn patterns(text: &str) -> Parsed<List<Pattern>> {
    list(text, "order of blocks", Pattern::ALL, Pattern::word)
}

pub(crate) fn caches(text: &str) -> Parsed<List<CacheState>> {
    list(text, "cache state", CacheState::ALL, CacheState::word)
}

pub(crate) fn targets(text: &str) -> Parsed<List<Destination>> {
    list(text, "target", Destination::ALL, Destination::word)
}

pub(crate) fn drop_modes(text: &str) -> Parsed<List<DropMode>> {
    list(text, "mode of drop_caches", DropMode::ALL, DropMode::word)
}

pub(crate) fn consumers(text: &str) -> Parsed<List<Consumer>> {
    list(text, "consumer", Consumer::ALL, Consumer::word)
}

/// What `tune` does with the bytes: nothing, or look at them.
pub(crate) fn tuned_consumer(text: &str) -> Parsed<Consumer> {
    lookup(text.trim(), "consumer", &[Consumer::None, Consumer::Scan], Consumer::word)
}

pub(crate) fn cache_wish(text: &str) -> Parsed<CacheWish> {
    lookup(text.trim(), "cache state", CacheWish::ALL, CacheWish::word)
}

/// Bytes of the blocks of copies.
pub(crate) fn blocks(text: &str) -> Parsed<List<Bytes>> {
    each(text, block_size)
}

pub(crate) fn copy_syncs(text: &str) -> Parsed<List<CopySync>> {
    list(text, "end of a copy", CopySync::ALL, CopySync::word)
}

pub(crate) fn depths(text: &str) -> Parsed<List<u32>> {
    let depths = parse::counts(text).map_err(|e| e.to_string())?;
    depths.iter().try_for_each(|n| depth(&n.to_string()).map(drop))?;
    Ok(List(depths))
}

/// Bytes of a test file.
pub(crate) fn file_size(text: &str) -> Parsed<Bytes> {
    parse::size(text).map_err(|e| e.to_string())
}

/// Thread pairs that can be asked for.
const THREADS_MAX: u32 = 1024;

/// Threads, or pairs of them, as a list or a range: `1,2,4`, `1..10`. Each has a thread and a
/// connection per arm at each end.
pub(crate) fn threads(text: &str) -> Parsed<List<u32>> {
    let one = |text: &str| at_most(text, u64::from(THREADS_MAX), "threads").and_then(narrow);
    let mut all = Vec::new();
    for item in parse::items(text).map_err(|e| e.to_string())? {
        let Some((from, to)) = item.split_once("..") else {
            all.push(one(item)?);
            continue;
        };
        let (from, to) = (one(from)?, one(to)?);
        if from > to {
            return Err(format!(
                "`{item}` is not a range of threads: write the smaller number first, like 1..10"
            ));
        }
        all.extend(from..=to);
    }
    all.sort_unstable();
    all.dedup();
    Ok(List(all))
}

/// Connections of one end, each with a thread.
pub(crate) fn connections(text: &str) -> Parsed<u32> {
    at_most(text, 1024, "connections").and_then(narrow)
}

pub(crate) fn cpus(text: &str) -> Parsed<List<u32>> {
    parse::cpus(text).map(List).map_err(|e| e.to_string())
}

pub(crate) fn networks(text: &str) -> Parsed<List<Stand>> {
    list(text, "network", &Stand::ALL, Stand::word)
}

pub(crate) fn modes(text: &str) -> Parsed<List<Mode>> {
    list(text, "mode", Mode::ALL, Mode::word)
}

pub(crate) fn send_memories(text: &str) -> Parsed<List<WorkingSet>> {
    list(text, "send memory", WorkingSet::ALL, WorkingSet::word)
}

pub(crate) fn send_memory(text: &str) -> Parsed<WorkingSet> {
    lookup(text.trim(), "send memory", WorkingSet::ALL, WorkingSet::word)
}

pub(crate) fn iovec(text: &str) -> Parsed<Iovec> {
    lookup(text.trim(), "iovec form", Iovec::ALL, Iovec::word)
}

pub(crate) fn iovecs(text: &str) -> Parsed<List<Iovec>> {
    list(text, "iovec form", Iovec::ALL, Iovec::word)
}

pub(crate) fn ips(text: &str) -> Parsed<List<IpVersion>> {
    list(text, "internet protocol", IpVersion::ALL, IpVersion::word)
}

pub(crate) fn counting(text: &str) -> Parsed<Counting> {
    lookup(text.trim(), "way of counting", Counting::ALL, Counting::word)
}

pub(crate) fn field_count(text: &str) -> Parsed<u32> {
    at_most(text, FIELDS_MAX as u64, "fields per message").and_then(narrow)
}

pub(crate) fn fields(text: &str) -> Parsed<List<u32>> {
    counts(text, FIELDS_MAX as u64, "fields per message")
}

/// Passes: `12` is exactly twelve, `12..60` stops in between when precise.
pub(crate) fn passes(text: &str) -> Parsed<Passes> {
    const PASSES_MAX: u64 = 10_000;
    let one = |text: &str| at_most(text, PASSES_MAX, "passes").and_then(narrow);
    let Some((from, to)) = text.split_once("..") else {
        let n = one(text)?;
        return Ok(Passes { minimum: n, maximum: n });
    };
    let (minimum, maximum) = (one(from)?, one(to)?);
    if minimum > maximum {
        return Err(format!(
            "`{text}` is not a range of passes: write the smaller number first, like 12..60"
        ));
    }
    Ok(Passes { minimum, maximum })
}

/// Length of a slice. Arms that take turns slowly are not comparable.
pub(crate) fn slice(text: &str) -> Parsed<Nanos> {
    const SLICE_MAX: Nanos = Nanos(10 * Nanos::SECOND.0);
    match span(text)? {
        slice if slice > SLICE_MAX => Err(format!(
            "a slice of {slice} is too long: arms that do not alternate cannot be compared; at \
             most {SLICE_MAX}, or the classic way with --sequential-time"
        )),
        slice => Ok(slice),
    }
}

pub(crate) fn rounds(text: &str) -> Parsed<u32> {
    at_most(text, 100_000, "rounds").and_then(narrow)
}

pub(crate) fn messages(text: &str) -> Parsed<u64> {
    at_most(text, 1 << 33, "messages")
}

pub(crate) fn span(text: &str) -> Parsed<Nanos> {
    parse::span(text).map_err(|e| e.to_string())
}

/// Two times, the shorter one first: `5s..15s`.
pub(crate) fn time_range(text: &str) -> Parsed<(Nanos, Nanos)> {
    let Some((from, to)) = text.split_once("..") else {
        return Err(format!("`{text}` is not a range of times: write two of them, like 5s..15s"));
    };
    match (span(from)?, span(to)?) {
        (from, to) if from < to => Ok((from, to)),
        _ => Err(format!("`{text}` is not a range of times: write the shorter one first")),
    }
}

pub(crate) fn fraction(text: &str) -> Parsed<f64> {
    parse::fraction(text).map_err(|e| e.to_string())
}

/// `SO_SNDBUF` and `SO_RCVBUF`: an int, which the kernel doubles.
pub(crate) fn socket_buffer(text: &str) -> Parsed<Bytes> {
    const SOCKET_BUFFER_MAX: Bytes = Bytes(512 * Bytes::MIB);
    match parse::size(text).map_err(|e| e.to_string())? {
        size if size > SOCKET_BUFFER_MAX => Err(format!(
            "a socket buffer of {size} is too large: the largest is {SOCKET_BUFFER_MAX}"
        )),
        size => Ok(size),
    }
}

pub(crate) fn socket_buffers(text: &str) -> Parsed<List<Bytes>> {
    each(text, socket_buffer)
}

/// Bytes asked of one recv(2).
pub(crate) fn recv_size(text: &str) -> Parsed<Bytes> {
    const RECEIVE_BYTES_MAX: Bytes = Bytes(64 * Bytes::MIB);
    match parse::size(text).map_err(|e| e.to_string())? {
        size if size > RECEIVE_BYTES_MAX => Err(format!(
            "a receive size of {size} is too large: every receiving thread has a buffer of it; \
             the largest is {RECEIVE_BYTES_MAX}"
        )),
        size => Ok(size),
    }
}

pub(crate) fn recv_sizes(text: &str) -> Parsed<List<Option<Bytes>>> {
    each(text, recv_size).map(|List(sizes)| List(sizes.into_iter().map(Some).collect()))
}

/// Sizes as a list or a range, each of which `check` accepts.
fn each(text: &str, check: fn(&str) -> Parsed<Bytes>) -> Parsed<List<Bytes>> {
    let sizes = parse::sizes(text).map_err(|e| e.to_string())?;
    sizes.iter().try_for_each(|size| check(&size.0.to_string()).map(|_| ()))?;
    Ok(List(sizes))
}

/// The word for reading completions when there is no other way on.
const NEEDED: &str = "needed";

/// Zero-copy sends after which completions are read; null for [`NEEDED`].
pub(crate) fn reap_batches(text: &str) -> Parsed<List<Option<u32>>> {
    const REAP_BATCH_MAX: u64 = 4096;
    let one = |item: &str| match item {
        NEEDED => Ok(None),
        number => {
            at_most(number, REAP_BATCH_MAX, "sends").and_then(narrow).map(Some).map_err(|why| {
                format!("{why}; or write `{NEEDED}`: when a message is to be used again")
            })
        }
    };
    let items = parse::items(text).map_err(|e| e.to_string())?;
    let batches: Result<Vec<Option<u32>>, String> = items.into_iter().map(one).collect();
    Ok(List(distinct(batches?)))
}

/// Back-to-back calls of a slice.
pub(crate) fn bursts(text: &str) -> Parsed<List<Option<u64>>> {
    const CALLS_MAX: u64 = 1_000_000;
    let one = |item: &str| match item {
        FULL => Ok(None),
        "fill" => Err(format!("`fill` is now `{FULL}`")),
        number => at_most(number, CALLS_MAX, "calls in a row").map(Some),
    };
    let items = parse::items(text).map_err(|e| e.to_string())?;
    items.into_iter().map(one).collect::<Parsed<Vec<_>>>().map(|all| List(distinct(all)))
}

/// As many as fill a slice.
const FULL: &str = "full";

/// `10`, `full`.
pub(crate) fn written_burst(calls: Option<u64>) -> String {
    calls.map_or_else(|| FULL.to_owned(), |calls| calls.to_string())
}

/// Sends through a ring, submitted together or in flight at once.
pub(crate) fn uring_sends(text: &str) -> Parsed<List<u32>> {
    counts(text, RING_SENDS_MAX.into(), "sends at once")
}

/// Values that read themselves.
pub(crate) fn each_of<T>(text: &str) -> Parsed<List<T>>
where
    T: FromStr<Err = String> + PartialEq,
{
    let items = parse::items(text).map_err(|e| e.to_string())?;
    items.into_iter().map(str::parse).collect::<Parsed<Vec<T>>>().map(|all| List(distinct(all)))
}

/// MTU of a veth device, in bytes: `ETH_MIN_MTU` to `ETH_MAX_MTU` of
/// include/uapi/linux/if_ether.h. What IPv6 needs is checked with the plan.
pub(crate) fn mtus(text: &str) -> Parsed<List<Option<u32>>> {
    const MTU_MIN: u64 = 68;
    const MTU_MAX: u64 = 65_535;
    let one = |item: &str| match parse::count(item) {
        Ok(n) if (MTU_MIN..=MTU_MAX).contains(&n) => narrow(n).map(Some),
        _ => Err(format!(
            "`{item}` is not an MTU: write a whole number of bytes from {MTU_MIN} to {MTU_MAX}"
        )),
    };
    let items = parse::items(text).map_err(|e| e.to_string())?;
    let mtus: Result<Vec<Option<u32>>, String> = items.into_iter().map(one).collect();
    Ok(List(distinct(mtus?)))
}

fn counts(text: &str, limit: u64, what: &str) -> Parsed<List<u32>> {
    let counts = parse::counts(text).map_err(|e| e.to_string())?;
    match counts.iter().find(|&&n| u64::from(n) > limit) {
        Some(n) => Err(format!("{n} {what} are too many: the largest number is {limit}")),
        None => Ok(List(counts)),
    }
}

fn at_most(text: &str, limit: u64, what: &str) -> Parsed<u64> {
    match parse::count(text).map_err(|e| e.to_string())? {
        n if n > limit => Err(format!("{n} {what} are too many: the largest number is {limit}")),
        n => Ok(n),
    }
}

fn narrow(n: u64) -> Parsed<u32> {
    u32::try_from(n).map_err(|_| format!("{n} is too large a number"))
}

fn list<T: Copy + PartialEq>(
    text: &str,
    what: &str,
    all: &[T],
    name: fn(T) -> &'static str,
) -> Parsed<List<T>> {
    let items = parse::items(text).map_err(|e| e.to_string())?;
    let values: Result<Vec<T>, String> =
        items.into_iter().map(|item| lookup(item, what, all, name)).collect();
    Ok(List(distinct(values?)))
}

fn distinct<T: PartialEq>(values: Vec<T>) -> Vec<T> {
    values.into_iter().fold(Vec::new(), |mut kept, value| {
        if !kept.contains(&value) {
            kept.push(value);
        }
        kept
    })
}

/// The value of a word, or "unknown mode `x`" with what there is.
fn lookup<T: Copy>(word: &str, what: &str, all: &[T], name: fn(T) -> &'static str) -> Parsed<T> {
    let words: Vec<&str> = all.iter().map(|&value| name(value)).collect();
    let renamed = RENAMED.iter().find(|(old, now)| *old == word && words.contains(now));
    if let Some((old, now)) = renamed {
        return Err(format!("`{old}` is now `{now}`"));
    }
    all.iter()
        .copied()
        .find(|&value| name(value) == word)
        .ok_or_else(|| unknown(what, word, &words, &format!("there is: {}", words.join(", "))))
}

/// "unknown method `x`, did you mean `y`?", or what there is.
pub(crate) fn unknown(what: &str, word: &str, known: &[&str], advice: &str) -> String {
    match nearest(word, known.iter().copied()) {
        Some(near) => format!("unknown {what} `{word}`, did you mean `{near}`? {advice}"),
        None => format!("unknown {what} `{word}`; {advice}"),
    }
}

/// A size in the largest unit that it is a whole number of: `64KiB`, `1000B`.
pub(crate) fn written_size(size: Bytes) -> String {
    let units = [(Bytes::GIB, "GiB"), (Bytes::MIB, "MiB"), (Bytes::KIB, "KiB")];
    match units.into_iter().find(|(scale, _)| size.0 >= *scale && size.0.is_multiple_of(*scale)) {
        Some((scale, unit)) => format!("{}{unit}", size.0 / scale),
        None => format!("{}B", size.0),
    }
}

/// A span in the largest unit that it is a whole number of: `5m`, `250ms`.
pub(crate) fn written_span(span: Nanos) -> String {
    span.written()
}

/// A fraction as a percentage where that reads back as the same number.
pub(crate) fn written_fraction(fraction: f64) -> String {
    let percent = format!("{}%", (fraction * 1e6).round() / 1e4);
    if parse::fraction(&percent) == Ok(fraction) { percent } else { fraction.to_string() }
}

/// Passes as they are asked for: `12`, `12..60`.
pub(crate) fn written_passes(passes: Passes) -> String {
    if passes.minimum == passes.maximum {
        passes.minimum.to_string()
    } else {
        format!("{}..{}", passes.minimum, passes.maximum)
    }
}

/// A reap batch as it is asked for.
pub(crate) fn written_reap_batch(batch: Option<u32>) -> String {
    batch.map_or_else(|| NEEDED.to_owned(), |sends| sends.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_values_read_back_as_they_were() {
        for size in [1, 1000, 1024, 1536, 65536, 1 << 20, 1 << 30] {
            let size = Bytes(size);
            assert_eq!(parse::size(&written_size(size)), Ok(size));
        }
        for ns in [1, 1_500, 2_000_000, 90_000_000_000, 600_000_000_000] {
            assert_eq!(span(&written_span(Nanos(ns))), Ok(Nanos(ns)));
        }
        for value in [0.03, 0.07, 0.005, 1.0 / 3.0] {
            assert_eq!(fraction(&written_fraction(value)), Ok(value));
        }
        for text in ["a='b c' {src} \"{dst}\"", "m.y-1=/bin/x --from={src} --to={dst} -b{block} ''"]
        {
            let read = external(text).unwrap();
            assert_eq!(external(&written_external(&read)), Ok(read));
        }
        for text in ["12", "12..60"] {
            assert_eq!(written_passes(passes(text).unwrap()), text);
        }
    }

    #[test]
    fn limits_are_named() {
        let check = |refused: Result<(), String>, expect: &str| {
            let message = refused.unwrap_err();
            assert!(message.contains(expect), "{message}");
        };
        check(sizes("2GiB").map(drop), "the largest size is 1 GiB");
        check(threads("5000").map(drop), "too many");
        check(fields("65").map(drop), "the largest number is 64");
        check(mtus("67").map(drop), "from 68 to 65535");
        check(mtus("1500,70000").map(drop), "`70000` is not an MTU");
        check(fields("1,0").map(drop), "at least 1");
        check(reap_batches("8,often").map(drop), "or write `needed`");
        check(reap_batches("5000").map(drop), "the largest number is 4096");
        check(uring_sends("512").map(drop), "the largest number is 256");
        check(socket_buffers("1GiB").map(drop), "the largest is 512 MiB");
        check(recv_sizes("4KiB,1GiB").map(drop), "the largest is 64 MiB");
        check(passes("60..12").map(drop), "smaller number first");
        check(slice("11s").map(drop), "--sequential-time");
        check(external("cp {src} {dst}").map(drop), "names no program");
        check(external("a b=cp {src} {dst}").map(drop), "is not a name of an arm");
        check(external("a=cp '{src} {dst}").map(drop), "not closed");
        check(external("a=cp {src}").map(drop), "lacks {dst}");
        check(external("a= ").map(drop), "names no program");
        check(blocks("4KiB,1GiB").map(drop), "the largest is 64 MiB");
        check(copy_syncs("fsnc").map(drop), "did you mean `fsync`?");
        check(networks("host").map(drop), "`host` is now `peer`");
        check(networks("loopbck").map(drop), "did you mean `loopback`?");
        check(iovecs("later").map(drop), "per-message, prebuilt");
    }
}
