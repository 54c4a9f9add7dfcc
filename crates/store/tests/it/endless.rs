//! Files whose pages lead in circles: small, and with more rows than can be read.

use std::fs;
use std::path::Path;

use iolens_store::{Importing, Source, Store, StoreError};
use rusqlite::Connection;

use crate::sample;

/// Bytes of a page.
const PAGE: usize = 4096;

/// Pages above the rows, each of which leads so often to the one below it: 10^24 rows.
const LEVELS: u32 = 12;
const CHILDREN: u16 = 100;

/// Kinds of inner pages.
const TABLE: u8 = 5;
const INDEX: u8 = 2;

/// An inner page (<https://www.sqlite.org/fileformat.html#b_tree_pages>) all of whose children
/// are one page; `kind` is that of tables or of indexes.
fn inner(kind: u8, child: u32) -> Vec<u8> {
    let mut page = vec![0; PAGE];
    // Of a table the number of a row, of an index a record of NULL and 0.
    let key: &[u8] = if kind == TABLE { &[7] } else { &[3, 3, 0, 8] };
    let cell_bytes = 4 + key.len();
    let content = PAGE - cell_bytes * usize::from(CHILDREN);
    page[0] = kind;
    page[3..5].copy_from_slice(&CHILDREN.to_be_bytes());
    page[5..7].copy_from_slice(&two_bytes(content));
    page[8..12].copy_from_slice(&child.to_be_bytes());
    for cell in 0..usize::from(CHILDREN) {
        let at = content + cell_bytes * cell;
        page[12 + 2 * cell..][..2].copy_from_slice(&two_bytes(at));
        page[at..at + 4].copy_from_slice(&child.to_be_bytes());
        page[at + 4..at + cell_bytes].copy_from_slice(key);
    }
    page
}

/// A place in a page, as it stands there.
fn two_bytes(place: usize) -> [u8; 2] {
    u16::try_from(place).expect("a page is not so large").to_be_bytes()
}

/// A database of one run, in which tables and indexes of these names lead to their rows again
/// and again.
fn endless(path: &Path, names: &[(&str, u8)]) {
    let mut store = Store::open(path).expect("it opens");
    store.begin_run(&sample::header("0000000a")).expect("it begins");
    store.append_trial("0000000a", &sample::trial(1, 0)).expect("it is stored");
    store.end_run("0000000a", &sample::end()).expect("it ends");
    drop(store);
    let other = Connection::open(path).expect("it opens");
    other.pragma_update(None, "journal_mode", "delete").expect("no log stays");
    let root = |name: &str| -> u32 {
        let sql = "SELECT rootpage FROM sqlite_schema WHERE name = ?";
        other.query_row(sql, [name], |row| row.get(0)).expect("it is there")
    };
    let roots: Vec<(u32, u8)> = names.iter().map(|(name, kind)| (root(name), *kind)).collect();
    drop(other);
    let mut file = fs::read(path).expect("it reads");
    let at = |page: u32| (page as usize - 1) * PAGE;
    let mut last = u32::try_from(file.len() / PAGE).expect("it is a small file");
    for (root, kind) in roots {
        let rows = file[at(root)..][..PAGE].to_vec();
        file.extend(rows);
        last += 1;
        for _ in 0..LEVELS {
            file.extend(inner(kind, last));
            last += 1;
        }
        file[at(root)..][..PAGE].copy_from_slice(&inner(kind, last));
    }
    // Its pages, which count as long as these two agree.
    file[28..32].copy_from_slice(&last.to_be_bytes());
    file.copy_within(24..28, 92);
    fs::write(path, file).expect("it writes");
}

/// An operation on such a file is given up, and says so.
#[track_caller]
fn given_up<T: std::fmt::Debug>(done: Result<T, StoreError>) {
    let words = done.expect_err("nobody reads it to its end").to_string();
    assert!(words.contains("more steps than a file of its size can need"), "{words}");
    assert!(words.contains(".db"), "{words}");
}

#[test]
fn a_small_file_without_an_end_is_given_up() {
    let directory = tempfile::tempdir().expect("a directory for the test");
    let path = directory.path().join("runs.db");
    endless(&path, &[("run", TABLE), ("sqlite_autoindex_run_1", INDEX)]);
    assert!(fs::metadata(&path).expect("it is there").len() < 300_000);
    let store = Store::open_read_only(&path).expect("its head is sound");
    given_up(store.runs());
    given_up(store.run_ids());
    given_up(store.headers());
    given_up(store.find("last"));
    given_up(store.empty_runs());
    given_up(store.extent());
    given_up(Store::look(&path));
    let source = Source::open(&path).expect("its head is sound");
    let mut own = Store::open(&directory.path().join("own.db")).expect("it opens");
    let here = sample::header("0000000f").host;
    let how = Importing { host: Some("stranger"), here: &here, now_unix_ns: 7 };
    given_up(own.import(&source, &how));

    let path = directory.path().join("slices.db");
    endless(&path, &[("slice", TABLE)]);
    let store = Store::open_read_only(&path).expect("its head is sound");
    let source = Source::open(&path).expect("its head is sound");
    let imported = own.import(&source, &how).expect("one run is refused");
    assert!(matches!(&imported[0].fate, iolens_store::Fate::Refused(_)), "{imported:?}");
    assert!(store.load("0000000a").is_err());
}
