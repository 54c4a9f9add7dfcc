//! The values of a plan as users write them, in flags and in plan files alike,
//! each with its limits; and how each is written back.

pub(crate) mod server;

use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;

use iolens_file::write::by_hand::Syncing;
use iolens_model::ab::AbQuantity;
use iolens_model::axes::{
    Counting, Direction, Iovec, IpVersion, Mode, Study, Topology, WorkingSet,
};
use iolens_model::copy::CopySync;
use iolens_model::file::{CacheState, Consumer, Destination, DropMode, Pattern};
use iolens_model::load::{Arrivals, Length};
use iolens_model::parse::{self, ParseError, nearest};
use iolens_model::plan::Passes;
use iolens_model::tune::CacheWish;
use iolens_model::tuning::RING_SENDS_MAX;
use iolens_model::units::{Bytes, Nanos};
use iolens_net::FIELDS_MAX;
use iolens_server::Close;

use crate::args::ProgressKind;

/// A list that is one value of a flag. By this name clap takes it for a value and not for a flag
/// that is repeated.
pub(crate) type List<T> = Vec<T>;

/// Where the ends are to stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stand {
    /// On veth where this machine permits it, on loopback elsewhere.
    Auto,
    /// There and nowhere else.
    At(Topology),
}

/// Why a value was refused, in words.
pub(crate) type Parsed<T> = Result<T, String>;

/// A value that is one word of a few.
pub(crate) trait Named: Copy + PartialEq + 'static {
    /// What a message calls it that does not know the word.
    const WHAT: &'static str;
    const ALL: &'static [Self];

    fn word(self) -> &'static str;
}

/// Values whose words are those of their type.
macro_rules! named {
    ($($type:ident $what:literal;)+) => {$(
        impl Named for $type {
            const WHAT: &'static str = $what;
            const ALL: &'static [$type] = $type::ALL;

            fn word(self) -> &'static str {
                $type::word(self)
            }
        }
    )+};
}

named! {
    AbQuantity "quantity";
    Arrivals "order of arrivals";
    CacheState "cache state";
    CacheWish "cache state";
    Consumer "consumer";
    CopySync "end of a copy";
    Counting "way of counting";
    Destination "target";
    Direction "end";
    DropMode "mode of drop_caches";
    Iovec "iovec form";
    IpVersion "internet protocol";
    Mode "mode";
    Pattern "order of blocks";
    ProgressKind "kind of progress";
    Study "study";
    Syncing "time to sync";
    WorkingSet "send memory";
}

impl Named for Stand {
    const WHAT: &'static str = "network";
    const ALL: &'static [Stand] = &[
        Stand::Auto,
        Stand::At(Topology::Loopback),
        Stand::At(Topology::Veth),
        Stand::At(Topology::Sink),
        Stand::At(Topology::Host),
    ];

    fn word(self) -> &'static str {
        match self {
            Stand::Auto => "auto",
            Stand::At(topology) => topology.word(),
        }
    }
}

impl Named for Close {
    const WHAT: &'static str = "side";
    const ALL: &'static [Close] = &[Close::Client, Close::Server];

    fn word(self) -> &'static str {
        Close::word(self)
    }
}

/// Whether connections carry many requests.
impl Named for Length {
    const WHAT: &'static str = "value of keep-alive";
    const ALL: &'static [Length] = &[Length::Long, Length::Short];

    fn word(self) -> &'static str {
        match self {
            Length::Long => "yes",
            Length::Short => "no",
        }
    }
}

/// Values that were renamed, and what they are called now.
const RENAMED: [(&str, &str); 5] = [
    ("host", "peer"),
    ("per_message", "per-message"),
    ("prepared", "prebuilt"),
    ("long", "yes"),
    ("short", "no"),
];

/// The value of a word.
pub(crate) fn one<T: Named>(text: &str) -> Parsed<T> {
    lookup(text.trim(), T::ALL)
}

/// The values of a list of words.
pub(crate) fn list<T: Named>(text: &str) -> Parsed<List<T>> {
    each(text, one)
}

/// What `tune` does with the bytes: nothing, or look at them.
pub(crate) fn tuned_consumer(text: &str) -> Parsed<Consumer> {
    lookup(text.trim(), &[Consumer::None, Consumer::Scan])
}

/// The value of a word, or "unknown mode `x`" with what there is.
fn lookup<T: Named>(word: &str, all: &[T]) -> Parsed<T> {
    let words: Vec<&str> = all.iter().map(|value| value.word()).collect();
    let renamed = RENAMED.iter().find(|(old, now)| *old == word && words.contains(now));
    if let Some((old, now)) = renamed {
        return Err(format!("`{old}` is now `{now}`"));
    }
    let found = all.iter().copied().find(|value| value.word() == word);
    found.ok_or_else(|| {
        unknown(T::WHAT, word, &words, &format!("choose from: {}", words.join(", ")))
    })
}

/// "unknown method `x`, did you mean `y`?", or what there is.
pub(crate) fn unknown(what: &str, word: &str, known: &[&str], advice: &str) -> String {
    match nearest(word, known.iter().copied()) {
        Some(near) => format!("unknown {what} `{word}`, did you mean `{near}`? {advice}"),
        None => format!("unknown {what} `{word}`; {advice}"),
    }
}

/// The items of a list, each once.
fn each<T: PartialEq>(text: &str, item: impl Fn(&str) -> Parsed<T>) -> Parsed<List<T>> {
    Ok(distinct(parse::items(text)?.into_iter().map(item).collect::<Parsed<Vec<T>>>()?))
}

/// Values that read themselves.
pub(crate) fn each_of<T: FromStr<Err = String> + PartialEq>(text: &str) -> Parsed<List<T>> {
    each(text, str::parse)
}

pub(crate) fn distinct<T: PartialEq>(values: Vec<T>) -> Vec<T> {
    values.into_iter().fold(Vec::new(), |mut kept, value| {
        if !kept.contains(&value) {
            kept.push(value);
        }
        kept
    })
}

/// A flag without a value.
pub(crate) fn switch(_: &str) -> Parsed<()> {
    Ok(())
}

pub(crate) fn words(text: &str) -> Parsed<List<String>> {
    each(text, |item| Ok(item.to_owned()))
}

/// Names in an order that says whose they are; one that comes twice is the caller's to refuse.
pub(crate) fn names(text: &str) -> Parsed<List<String>> {
    Ok(parse::items(text)?.into_iter().map(str::to_owned).collect())
}

pub(crate) fn word(text: &str) -> Parsed<String> {
    let word = text.trim();
    if word.is_empty() { Err("a name must not be empty".to_owned()) } else { Ok(word.to_owned()) }
}

pub(crate) fn run_name(text: &str) -> Parsed<String> {
    Ok(parse::run_name(text)?)
}

pub(crate) fn path(text: &str) -> Parsed<PathBuf> {
    if text.is_empty() { Err("a path must not be empty".to_owned()) } else { Ok(text.into()) }
}

pub(crate) fn seed(text: &str) -> Parsed<u64> {
    text.trim().parse().map_err(|_| format!("`{text}` is not a seed: write a whole number"))
}

/// Bytes of a test file.
pub(crate) fn file_size(text: &str) -> Parsed<Bytes> {
    Ok(parse::size(text)?)
}

/// One message size. The largest is what the memory for rings sets, not the kernel.
pub(crate) fn size(text: &str) -> Parsed<Bytes> {
    const MESSAGE: Bytes = Bytes(Bytes::GIB);
    let why = "the rings of all arms must fit memory; the largest size";
    no_larger(parse::size(text)?, MESSAGE, "message", why)
}

pub(crate) fn sizes(text: &str) -> Parsed<List<Bytes>> {
    each_size(text, size)
}

/// The largest block of a file: each thread of each arm has a buffer of it, or several.
const BLOCK: Bytes = Bytes(64 * Bytes::MIB);

/// Bytes of a block of a file.
pub(crate) fn block_size(text: &str) -> Parsed<Bytes> {
    match parse::size(text) {
        Err(ParseError::SizeZero) => {
            Err(format!("a block of 0 bytes moves nothing: write 1 to {BLOCK}"))
        }
        size => a_block(size?),
    }
}

/// Refuses a block that is too large.
pub(crate) fn a_block(size: Bytes) -> Parsed<Bytes> {
    no_larger(size, BLOCK, "block", "the largest")
}

/// Bytes of the blocks of copies.
pub(crate) fn blocks(text: &str) -> Parsed<List<Bytes>> {
    each_size(text, block_size)
}

/// `SO_SNDBUF` and `SO_RCVBUF`: an int, which the kernel doubles.
pub(crate) fn socket_buffer(text: &str) -> Parsed<Bytes> {
    no_larger(parse::size(text)?, Bytes(512 * Bytes::MIB), "socket buffer", "the largest")
}

pub(crate) fn socket_buffers(text: &str) -> Parsed<List<Bytes>> {
    each_size(text, socket_buffer)
}

/// Bytes asked of one recv(2).
pub(crate) fn recv_size(text: &str) -> Parsed<Bytes> {
    const RECEIVE: Bytes = Bytes(64 * Bytes::MIB);
    let why = "every receiving thread has a buffer of it; the largest";
    no_larger(parse::size(text)?, RECEIVE, "receive size", why)
}

pub(crate) fn recv_sizes(text: &str) -> Parsed<List<Option<Bytes>>> {
    Ok(each_size(text, recv_size)?.into_iter().map(Some).collect())
}

/// Sizes as a list or a range, each of which `check` accepts.
fn each_size(text: &str, check: fn(&str) -> Parsed<Bytes>) -> Parsed<List<Bytes>> {
    let sizes = parse::sizes(text)?;
    sizes.iter().try_for_each(|size| check(&size.0.to_string()).map(drop))?;
    Ok(sizes)
}

/// A size up to a limit, or "a block of 1 GiB is too large: the largest is 64 MiB".
fn no_larger(size: Bytes, limit: Bytes, what: &str, largest: &str) -> Parsed<Bytes> {
    match size > limit {
        true => Err(format!("a {what} of {size} is too large: {largest} is {limit}")),
        false => Ok(size),
    }
}

pub(crate) fn block_count(text: &str) -> Parsed<u64> {
    Ok(parse::count(text)?)
}

/// A whole number from 1 to a limit.
pub(crate) fn up_to(limit: u32, what: &'static str) -> impl Fn(&str) -> Parsed<u32> + Clone {
    move |text| at_most(text, limit, what)
}

fn at_most<N>(text: &str, limit: N, what: &str) -> Parsed<N>
where
    N: TryFrom<u64> + PartialOrd + Display,
{
    let n = parse::count(text)?;
    match N::try_from(n) {
        Ok(n) if n <= limit => Ok(n),
        _ => Err(format!("{n} {what} are too many: the largest number is {limit}")),
    }
}

fn counts(text: &str, limit: u32, what: &str) -> Parsed<List<u32>> {
    let counts = parse::counts(text)?;
    counts.iter().try_for_each(|n| at_most(&n.to_string(), limit, what).map(drop))?;
    Ok(counts)
}

/// Sends through a ring, submitted together or in flight at once.
pub(crate) fn uring_sends(text: &str) -> Parsed<List<u32>> {
    counts(text, RING_SENDS_MAX, "sends at once")
}

/// Thread pairs that can be asked for: each has a thread and a connection per arm at each end.
const THREADS_MAX: u32 = 1024;

/// Threads, or pairs of them, as a list or a range: `1,2,4`, `1..10`.
pub(crate) fn threads(text: &str) -> Parsed<List<u32>> {
    let mut all = Vec::new();
    for item in parse::items(text)? {
        let (least, most) = range(item, THREADS_MAX, "threads", "1..10")?;
        all.extend(least..=most);
    }
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

/// Passes: `12` is exactly twelve, `12..60` stops in between when precise.
pub(crate) fn passes(text: &str) -> Parsed<Passes> {
    let (minimum, maximum) = range(text, 10_000, "passes", "12..60")?;
    Ok(Passes { minimum, maximum })
}

/// A number, or two with the smaller one first.
fn range(text: &str, limit: u32, what: &str, example: &str) -> Parsed<(u32, u32)> {
    let (from, to) = text.split_once("..").unwrap_or((text, text));
    let (from, to) = (at_most(from, limit, what)?, at_most(to, limit, what)?);
    match from > to {
        true => Err(format!(
            "`{text}` is not a range of {what}: write the smaller number first, like {example}"
        )),
        false => Ok((from, to)),
    }
}

/// Threads that read or write one file.
pub(crate) fn file_threads(text: &str) -> Parsed<u32> {
    at_most(text, 1024, "threads")
}

/// Connections that wait to be taken: an int of listen(2), of which the kernel keeps
/// what net.core.somaxconn allows.
pub(crate) fn backlog(text: &str) -> Parsed<u32> {
    at_most(text, 1 << 24, "waiting connections")
}

/// Connections of one end, each with a thread.
pub(crate) fn connections(text: &str) -> Parsed<u32> {
    at_most(text, THREADS_MAX, "connections")
}

/// Connections that one message is asked about.
pub(crate) fn asked_connections(text: &str) -> Parsed<u32> {
    let n = parse::count(text)?;
    u32::try_from(n).ok().filter(|n| *n <= THREADS_MAX).ok_or_else(|| {
        format!(
            "{n} connections cannot be measured: each has a thread of its own at either end, and \
             there can be {THREADS_MAX} of them\n  ask about {THREADS_MAX} at most; `iolens run \
             server --connections {n}` measures servers, where threads have many"
        )
    })
}

/// Requests of a thread that are under way at once.
pub(crate) fn depth(text: &str) -> Parsed<u32> {
    at_most(text, 1024, "requests at once")
}

pub(crate) fn depths(text: &str) -> Parsed<List<u32>> {
    counts(text, 1024, "requests at once")
}

/// Fields of a message at most.
#[expect(clippy::cast_possible_truncation, reason = "a small constant")]
const FIELDS: u32 = FIELDS_MAX as u32;

pub(crate) fn field_count(text: &str) -> Parsed<u32> {
    at_most(text, FIELDS, "fields per message")
}

pub(crate) fn fields(text: &str) -> Parsed<List<u32>> {
    counts(text, FIELDS, "fields per message")
}

pub(crate) fn messages(text: &str) -> Parsed<u64> {
    at_most(text, 1 << 33, "messages")
}

pub(crate) fn cpus(text: &str) -> Parsed<List<u32>> {
    Ok(parse::cpus(text)?)
}

pub(crate) fn span(text: &str) -> Parsed<Nanos> {
    Ok(parse::span(text)?)
}

/// Length of a slice of methods, which may also be measured one after another.
pub(crate) fn slice(text: &str) -> Parsed<Nanos> {
    slice_or(text, ", or the classic way with --sequential-time")
}

/// Length of a slice of the programs of `ab`.
pub(crate) fn ab_slice(text: &str) -> Parsed<Nanos> {
    slice_or(text, "")
}

/// Arms that take turns slowly are not comparable; what else there is, is said of too long a slice.
fn slice_or(text: &str, otherwise: &str) -> Parsed<Nanos> {
    const SLICE_MAX: Nanos = Nanos(10 * Nanos::SECOND.0);
    match span(text)? {
        slice if slice > SLICE_MAX => Err(format!(
            "a slice of {slice} is too long: arms that do not alternate cannot be compared; at \
             most {SLICE_MAX}{otherwise}"
        )),
        slice => Ok(slice),
    }
}

/// Two times, the shorter one first: `5s..15s`.
pub(crate) fn time_range(text: &str) -> Parsed<(Nanos, Nanos)> {
    let refused = |why| format!("`{text}` is not a range of times: write {why}");
    let (from, to) = text.split_once("..").ok_or_else(|| refused("two of them, like 5s..15s"))?;
    match (span(from)?, span(to)?) {
        (from, to) if from < to => Ok((from, to)),
        _ => Err(refused("the shorter one first")),
    }
}

pub(crate) fn fraction(text: &str) -> Parsed<f64> {
    Ok(parse::fraction(text)?)
}

/// The word for reading completions when there is no other way on.
const NEEDED: &str = "needed";

/// Zero-copy sends after which completions are read; `None` for [`NEEDED`].
pub(crate) fn reap_batches(text: &str) -> Parsed<List<Option<u32>>> {
    each(text, |item| match item {
        NEEDED => Ok(None),
        number => at_most(number, 4096, "sends").map(Some).map_err(|why| {
            format!("{why}; or write `{NEEDED}`: when a message is to be used again")
        }),
    })
}

/// As many as fill a slice.
const FULL: &str = "full";

/// Back-to-back calls of a slice.
pub(crate) fn bursts(text: &str) -> Parsed<List<Option<u64>>> {
    each(text, |item| match item {
        FULL => Ok(None),
        "fill" => Err(format!("`fill` is now `{FULL}`")),
        number => at_most(number, 1_000_000, "calls in a row").map(Some),
    })
}

/// MTU of a veth device, in bytes: `ETH_MIN_MTU` to `ETH_MAX_MTU` of
/// include/uapi/linux/if_ether.h. What IPv6 needs is checked with the plan.
pub(crate) fn mtus(text: &str) -> Parsed<List<Option<u32>>> {
    const MTU_MIN: u32 = 68;
    const MTU_MAX: u32 = 65_535;
    each(text, |item| match item.parse() {
        Ok(n) if (MTU_MIN..=MTU_MAX).contains(&n) => Ok(Some(n)),
        _ => Err(format!(
            "`{item}` is not an MTU: write a whole number of bytes from {MTU_MIN} to {MTU_MAX}"
        )),
    })
}

/// A size in the largest unit that it is a whole number of: `64KiB`, `1000B`.
pub(crate) fn written_size(size: Bytes) -> String {
    let units = [(Bytes::GIB, "GiB"), (Bytes::MIB, "MiB"), (Bytes::KIB, "KiB")];
    match units.into_iter().find(|(scale, _)| size.0 >= *scale && size.0.is_multiple_of(*scale)) {
        Some((scale, unit)) => format!("{}{unit}", size.0 / scale),
        None => format!("{}B", size.0),
    }
}

/// A fraction as a percentage where that reads back as the same number.
pub(crate) fn written_fraction(fraction: f64) -> String {
    let percent = format!("{}%", (fraction * 1e6).round() / 1e4);
    if parse::fraction(&percent) == Ok(fraction) { percent } else { fraction.to_string() }
}

/// Passes as they are asked for: `12`, `12..60`.
pub(crate) fn written_passes(Passes { minimum, maximum }: Passes) -> String {
    match minimum == maximum {
        true => minimum.to_string(),
        false => format!("{minimum}..{maximum}"),
    }
}

/// A reap batch as it is asked for.
pub(crate) fn written_reap_batch(batch: Option<u32>) -> String {
    batch.map_or_else(|| NEEDED.to_owned(), |sends| sends.to_string())
}

/// `10`, `full`.
pub(crate) fn written_burst(calls: Option<u64>) -> String {
    calls.map_or_else(|| FULL.to_owned(), |calls| calls.to_string())
}

#[cfg(test)]
mod tests {
    use super::server::{external, written_external};
    use super::*;

    #[test]
    fn written_values_read_back_as_they_were() {
        for size in [1, 1000, 1024, 1536, 65536, 1 << 20, 1 << 30] {
            let size = Bytes(size);
            assert_eq!(parse::size(&written_size(size)), Ok(size));
        }
        for ns in [1, 1_500, 2_000_000, 90_000_000_000, 600_000_000_000] {
            assert_eq!(span(&Nanos(ns).written()), Ok(Nanos(ns)));
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
        assert!(ab_slice("11s").unwrap_err().ends_with("at most 10.0 s"));
        check(external("cp {src} {dst}").map(drop), "names no program");
        check(external("a b=cp {src} {dst}").map(drop), "is not a name of an arm");
        check(external("a=cp '{src} {dst}").map(drop), "not closed");
        check(external("a= ").map(drop), "names no program");
        check(blocks("4KiB,1GiB").map(drop), "the largest is 64 MiB");
        check(list::<CopySync>("fsnc").map(drop), "did you mean `fsync`?");
        check(list::<Stand>("host").map(drop), "`host` is now `peer`");
        check(list::<Stand>("loopbck").map(drop), "did you mean `loopback`?");
        check(list::<Iovec>("later").map(drop), "per-message, prebuilt");
    }

    #[test]
    fn more_connections_than_threads_are_refused_in_words() {
        assert_eq!(asked_connections("1024"), Ok(1024));
        let why = asked_connections("1025").unwrap_err();
        assert!(why.contains("a thread of its own at either end") && why.contains("1024"), "{why}");
        assert!(asked_connections("0").is_err() && asked_connections("many").is_err());
        assert!(one::<Mode>("both").unwrap_err().contains("rr"));
        assert_eq!(one("auto"), Ok(Stand::Auto));
    }
}
