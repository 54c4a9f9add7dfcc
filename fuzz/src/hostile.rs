//! What reads bytes that somebody else wrote, as functions of these bytes: none
//! may panic or hang, whatever the bytes are, and what is refused is refused in
//! words. `cargo test` gives them a few of each kind, `cargo fuzz` many.

use std::cell::OnceCell;
use std::io::Cursor;
use std::path::Path;

use iolens_audit::bounds::Bounds;
use iolens_engine::far::launcher::Lines;
use iolens_engine::far::wire::{self, Frames, FromKeeper, ToKeeper};
use iolens_engine::worker::protocol::{FromWorker, ToWorker};
use iolens_harness::frames::{FrameBuffer, read_frame, write_frame};
use iolens_harness::host;
use iolens_harness::journal::Journal;
use iolens_harness::sysctl;
use iolens_model::run::Run;
use iolens_programs::protocol;
use iolens_report::export::{Columns, Rows};
use iolens_report::text::Style;
use iolens_report::{csv, html, json, text};
use iolens_server::load;
use iolens_server::load::Expected;
use iolens_store::{Source, Store};
use rusqlite::Connection;
use rusqlite::types::Value;

#[allow(dead_code, unreachable_pub, reason = "a run like those of the report's own tests")]
#[path = "../../crates/report/src/fixture.rs"]
mod fixture;

/// A plan file, up to whether this machine could measure it.
pub fn plan(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Err(message) = iolens::plan_of("strange.toml", &text) {
        assert!(!message.is_empty());
    }
}

/// A plan file of `ab`, up to whether its programs are there.
pub fn ab_plan(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match iolens::ab_plan_of("strange.toml", &text) {
        Ok(plan) => assert!(!plan.cells().is_empty()),
        Err(message) => assert!(!message.is_empty()),
    }
}

/// What a program says that is asked in the loop protocol.
pub fn loop_lines(bytes: &[u8]) {
    for line in bytes.split(|byte| *byte == b'\n') {
        let said = [protocol::ready(line).err(), protocol::answer(line).err()];
        for fault in said.into_iter().flatten().chain([protocol::unasked(line, true)]) {
            let shown = fault.to_string();
            assert!(!shown.is_empty() && !shown.contains(char::is_control), "{shown:?}");
        }
    }
}

/// Runs exported whole; what is taken in can be shown, and exported again.
pub fn import(bytes: &[u8]) {
    let path = Path::new("strange.json");
    let source = match Source::of_lines(path, bytes) {
        Ok(source) => source,
        Err(refused) => return assert!(!refused.to_string().is_empty()),
    };
    let store = source.into_store();
    for id in store.run_ids().unwrap_or_default() {
        let mut text = String::new();
        store.lines(&id, |line| text.push_str(line)).expect("what was taken in is written");
        let again = Source::of_lines(path, text.as_bytes()).expect("what was written is read");
        let mut same = String::new();
        let again = again.into_store();
        again.lines(&id, |line| same.push_str(line)).expect("and written again");
        assert_eq!(text, same);
        if let Ok(run) = store.load(&id) {
            show(run, Shown::Text);
        }
    }
}

/// A plan of a stored run that is to be measured again, and behind a NUL what is changed in it.
pub fn stored_plan(bytes: &[u8]) {
    let (plan, edits) = bytes.split_at(bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len()));
    let mut text = String::from_utf8_lossy(plan).into_owned();
    let mut choices = Choices(edits.get(1..).unwrap_or_default());
    while !choices.0.is_empty() {
        if let Value::Text(edited) = changed(Value::Text(text.clone()), &mut choices) {
            text = edited;
        }
    }
    if let Err(message) = iolens::stored_plan(&text) {
        assert!(!message.is_empty());
    }
}

/// A command line, a word a line.
pub fn arguments(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = iolens::understands(text.lines());
}

/// A table or what perf stat prints, with all that can be known of a machine.
pub fn tables(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let bounds = Bounds {
        clock_min_hz: Some(1e9),
        clock_max_hz: Some(5e9),
        memory_bytes_per_s: Some(2e10),
        link_bytes_per_s: Some(1e10),
        empty_call_ns: Some(60.0),
        cpus: Some(4),
    };
    let files = [("strange.csv".to_owned(), text.into_owned())];
    match iolens_audit::audit_all(&files, &[], &bounds) {
        Ok(audits) => drop(iolens_audit::text::render(&audits, 80)),
        Err(refused) => assert!(!refused.error.to_string().is_empty()),
    }
}

/// A stream of frames; what is read is written, and then reads the same.
pub fn frames(bytes: &[u8]) {
    let mut buffer = FrameBuffer::default();
    let mut from = Cursor::new(bytes);
    while let Ok(Some(message)) = read_frame::<FromWorker>(&mut from, &mut buffer) {
        let mut wire = Vec::new();
        write_frame(&mut wire, &message).expect("what was read can be written");
    }
    let mut buffer = FrameBuffer::default();
    buffer.extend(bytes);
    while let Ok(Some(message)) = buffer.take::<ToWorker>() {
        let mut wire = Vec::new();
        write_frame(&mut wire, &message).expect("what was read can be written");
    }
    keeper(bytes);
}

/// What travels between this machine and a keeper on another.
fn keeper(bytes: &[u8]) {
    let mut frames = Frames::default();
    for piece in bytes.chunks(7) {
        frames.extend(piece);
        while let Ok(Some((_, body))) = frames.take() {
            if let Ok(word) = wire::word::<FromKeeper>(&body) {
                wire::say(&mut Vec::new(), &word).expect("what was read can be written");
            }
            if let Ok(word) = wire::word::<ToKeeper>(&body) {
                wire::say(&mut Vec::new(), &word).expect("what was read can be written");
            }
        }
    }
}

/// What comes from behind a launcher before there are frames: lines of a shell and of others.
pub fn bootstrap(bytes: &[u8]) {
    let read = |size: usize| {
        let (mut lines, mut said) = (Lines::default(), Vec::new());
        for piece in bytes.chunks(size) {
            lines.extend(piece);
            loop {
                match lines.take() {
                    Ok(Some(line)) => said.push(line),
                    Ok(None) => break,
                    // Nothing is read after that.
                    Err(odd) => return (said, Some(odd), Vec::new()),
                }
            }
        }
        (said, None, lines.rest())
    };
    let at_once = read(bytes.len().max(1));
    assert!(at_once.0.iter().all(|line| !line.contains('\n')));
    assert_eq!(read(7), at_once);
}

/// The journal of sysctls, and the machine of who puts back what stands in it: the texts are
/// separated by NUL.
pub fn journal(bytes: &[u8]) {
    const FILES: [&str; 4] = [
        "run/iolens.journal",
        "proc/sys/kernel/random/boot_id",
        "proc/7/stat",
        "proc/sys/net/core/high_order_alloc_disable",
    ];
    let folder = tempfile::tempdir().expect("a folder can be made");
    for (file, text) in FILES.iter().zip(bytes.split(|byte| *byte == 0)) {
        let path = folder.path().join(file);
        std::fs::create_dir_all(path.parent().expect("it has one")).expect("it can be made");
        std::fs::write(path, text).expect("it can be written");
    }
    let outside = folder.path().join("proc/7/stat");
    let before = std::fs::read(&outside).ok();
    let journal = Journal::at(host::Root::at(folder.path()));
    assert!(sysctl::sweep(&journal).iter().all(|said| !said.is_empty()));
    // Nothing else is ever written, whatever a journal says.
    assert_eq!(std::fs::read(&outside).ok(), before);
}

/// What a server answers: the first byte says what is expected, the second how
/// large the pieces are.
pub fn replies(bytes: &[u8]) {
    let [kind, piece_bytes, stream @ ..] = bytes else { return };
    let expected = match kind % 7 {
        0 => Expected::Id,
        1 => Expected::Text(b"some text".to_vec()),
        2 => Expected::Fill(64),
        3 => Expected::Burned,
        4 => Expected::Processes,
        5 => Expected::Record,
        _ => Expected::Http,
    };
    let in_pieces = load::replies(stream.chunks(usize::from(*piece_bytes) + 1), &expected);
    let at_once = load::replies([stream], &expected);
    // What a stream says does not depend on how it comes; only HTTP, whose header may be
    // too long, then gives up on all that the piece holds. Texts are kept in part.
    if expected != Expected::Http {
        assert!(
            in_pieces
                .iter()
                .map(|read| (read.0, read.1))
                .eq(at_once.iter().map(|read| (read.0, read.1)))
        );
    }
}

/// Files that describe the machine; the texts are separated by NUL.
pub fn host(bytes: &[u8]) {
    const FILES: [&str; 12] = [
        "proc/cpuinfo",
        "proc/meminfo",
        "proc/self/cgroup",
        "proc/self/status",
        "proc/self/mountinfo",
        "sys/fs/cgroup/memory.max",
        "sys/fs/cgroup/memory.current",
        "sys/fs/cgroup/cpu.max",
        "sys/devices/system/cpu/cpu0/cache/index0/size",
        "sys/devices/system/cpu/cpu0/cache/index0/level",
        "sys/devices/system/cpu/cpu0/cache/index0/type",
        "sys/devices/system/cpu/online",
    ];
    let folder = tempfile::tempdir().expect("a folder can be made");
    for (file, text) in FILES.iter().zip(bytes.split(|byte| *byte == 0)) {
        let path = folder.path().join(file);
        std::fs::create_dir_all(path.parent().expect("it has one")).expect("it can be made");
        std::fs::write(path, text).expect("it can be written");
    }
    let root = host::Root::at(folder.path());
    let _ = host::limits(&root);
    let _ = host::memory_room(&root);
}

/// A database of one run in which bytes were overwritten and the end was cut off.
pub fn pages(bytes: &[u8]) {
    let mut choices = Choices(bytes);
    with_database(|path, mut database| {
        if choices.next(4) == 0 {
            database.truncate(choices.wide() % (database.len() + 1));
        }
        while !choices.0.is_empty() && !database.is_empty() {
            let at = choices.wide() % database.len();
            database[at] = choices.byte();
        }
        std::fs::write(path, database).expect("it can be written");
        read_everything(path, Shown::Text);
    });
}

/// A database of one run in which values were edited, as SQL would.
pub fn rows(bytes: &[u8]) {
    let mut choices = Choices(bytes);
    with_database(|path, database| {
        std::fs::write(path, database).expect("it can be written");
        let shown = if choices.next(2) == 0 { Shown::Text } else { Shown::Everything };
        let connection = Connection::open(path).expect("the database is sound");
        while !choices.0.is_empty() {
            // What a constraint refuses was not edited.
            let _ = edit(&connection, &mut choices);
        }
        connection.close().expect("it closes");
        read_everything(path, shown);
    });
}

/// Sets one value of one row, by choice.
fn edit(connection: &Connection, choices: &mut Choices<'_>) -> rusqlite::Result<()> {
    const TABLES: [&str; 5] = ["run", "trial", "arm", "slice", "run_end"];
    let table = TABLES[choices.next(TABLES.len())];
    let columns: Vec<String> = connection
        .prepare(&format!("SELECT name FROM pragma_table_info('{table}')"))?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let column = &columns[choices.next(columns.len())];
    let rows: usize =
        connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0))?;
    let row = choices.wide() % rows.max(1);
    let at = format!("rowid = (SELECT rowid FROM {table} LIMIT 1 OFFSET {row})");
    let old: Value =
        connection
            .query_row(&format!("SELECT {column} FROM {table} WHERE {at}"), [], |row| row.get(0))?;
    let sql = format!("UPDATE {table} SET {column} = ? WHERE {at}");
    connection.execute(&sql, [changed(old, choices)]).map(|_| ())
}

/// Another value in the place of this one. In JSON a number is changed, or a byte.
fn changed(old: Value, choices: &mut Choices<'_>) -> Value {
    const INTEGERS: [i64; 9] = [0, 1, -1, 2, 1 << 31, u32::MAX as i64, 1 << 40, 1 << 62, i64::MAX];
    let integer = INTEGERS[choices.next(INTEGERS.len())];
    match (choices.next(4), old) {
        (0, _) => Value::Null,
        (1, Value::Text(mut text)) => {
            let at = choices.wide() % (text.len() + 1);
            if text.is_char_boundary(at) {
                text.insert(at, char::from(choices.byte() & 0x7f));
            }
            Value::Text(text)
        }
        (_, Value::Text(text)) => {
            let is_digit = |byte: u8| byte.is_ascii_digit();
            let starts: Vec<usize> = (0..text.len())
                .filter(|&at| is_digit(text.as_bytes()[at]))
                .filter(|&at| at == 0 || !is_digit(text.as_bytes()[at - 1]))
                .collect();
            if starts.is_empty() {
                return Value::Integer(integer);
            }
            let start = starts[choices.wide() % starts.len()];
            let rest = text[start..].trim_start_matches(|letter: char| letter.is_ascii_digit());
            Value::Text(format!("{}{integer}{rest}", &text[..start]))
        }
        (1, Value::Integer(_)) => Value::Real(0.5),
        _ => Value::Integer(integer),
    }
}

/// How much of a run is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    Text,
    Everything,
}

/// All that a command reads of a database, the page and all formats of rows too.
fn read_everything(path: &Path, shown: Shown) {
    let named = |error: &dyn std::fmt::Display| assert!(!error.to_string().is_empty());
    let store = match Store::open_read_only(path) {
        Ok(store) => store,
        Err(error) => return named(&error),
    };
    let _ = store.runs().map_err(|error| named(&error));
    let _ = store.extent().map_err(|error| named(&error));
    for id in store.run_ids().unwrap_or_default() {
        match store.load(&id) {
            Ok(run) => show(run, shown),
            Err(error) => named(&error),
        }
    }
}

/// A run as every command would show it.
fn show(run: Run, shown: Shown) {
    let analysis = iolens_stats::analyse(&run);
    let style = Style { colour: true, ..Style::plain(100) };
    let _ = text::run(&run, &analysis, &style);
    if shown == Shown::Text {
        return;
    }
    let _ = text::whole(&run, &analysis, &style);
    if let Some(cell) = analysis.cells.first() {
        let _ = text::show(&run, &analysis, cell, &style);
    }
    let _ = json::run(&run, &analysis);
    let (runs, analyses) = (std::slice::from_ref(&run), std::slice::from_ref(&analysis));
    let rows =
        [Rows::Arms(runs), Rows::Slices(runs), Rows::Cells(runs, analyses), Rows::Phases(runs)];
    for rows in rows {
        let _ = csv::of(rows, Columns::Named(&rows.short()));
        let _ = csv::of(rows, Columns::All);
        let _ = csv::reasons(rows, Columns::All);
    }
    let _ = html::page(&run, &analysis);
}

/// Calls with a path and the bytes of a database with one run in it, which is made once.
fn with_database(use_it: impl FnOnce(&Path, Vec<u8>)) {
    thread_local! {
        static MADE: OnceCell<(tempfile::TempDir, Vec<u8>)> = const { OnceCell::new() };
    }
    MADE.with(|made| {
        let (folder, database) = made.get_or_init(|| {
            let folder = tempfile::tempdir().expect("a folder can be made");
            let path = folder.path().join("whole.db");
            let mut store = Store::open(&path).expect("a database can be made");
            let (run, _) = fixture::classic();
            store.begin_run(&run.header).expect("the run begins");
            for trial in &run.trials {
                store.append_trial(&run.header.id, trial).expect("the trial is stored");
            }
            drop(store);
            let database = std::fs::read(&path).expect("it was written");
            (folder, database)
        });
        use_it(&folder.path().join("strange.db"), database.clone());
    });
}

/// Bytes as choices; when they are used up, each is the first one.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// One of so many.
    fn next(&mut self, of: usize) -> usize {
        usize::from(self.byte()) % of.max(1)
    }

    /// A number of three bytes.
    fn wide(&mut self) -> usize {
        (0..3).fold(0, |number, _| number << 8 | usize::from(self.byte()))
    }
}
