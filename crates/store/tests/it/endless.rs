//! Files whose pages lead in circles: small, and with more rows than can be read.

use std::fs;
use std::path::Path;

use iolens_store::{Importing, Source, Store, StoreError};
use rusqlite::Connection;

use crate::{sample, small_run};

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
    page[5..7].copy_from_slice(&u16::try_from(content).unwrap().to_be_bytes());
    page[8..12].copy_from_slice(&child.to_be_bytes());
    for cell in 0..usize::from(CHILDREN) {
        let at = content + cell_bytes * cell;
        page[12 + 2 * cell..][..2].copy_from_slice(&u16::try_from(at).unwrap().to_be_bytes());
        page[at..at + 4].copy_from_slice(&child.to_be_bytes());
        page[at + 4..at + cell_bytes].copy_from_slice(key);
    }
    page
}

/// A database of one run, in which tables and indexes of these names lead to their rows again
/// and again.
fn endless(path: &Path, names: &[(&str, u8)]) {
    let mut store = Store::open(path).unwrap();
    small_run(&mut store, "0000000a");
    drop(store);
    let other = Connection::open(path).unwrap();
    other.pragma_update(None, "journal_mode", "delete").unwrap();
    let root = |name: &str| -> u32 {
        let sql = "SELECT rootpage FROM sqlite_schema WHERE name = ?";
        other.query_row(sql, [name], |row| row.get(0)).unwrap()
    };
    let roots: Vec<(u32, u8)> = names.iter().map(|(name, kind)| (root(name), *kind)).collect();
    drop(other);
    let mut file = fs::read(path).unwrap();
    let at = |page: u32| (page as usize - 1) * PAGE;
    let mut last = u32::try_from(file.len() / PAGE).unwrap();
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
    fs::write(path, file).unwrap();
}

/// An operation on such a file is given up, and says so.
#[track_caller]
fn given_up<T: std::fmt::Debug>(done: Result<T, StoreError>) {
    let words = done.unwrap_err().to_string();
    assert!(words.contains("more steps than a file of its size can need"), "{words}");
    assert!(words.contains(".db"), "{words}");
}

#[test]
fn a_small_file_without_an_end_is_given_up() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("runs.db");
    endless(&path, &[("run", TABLE), ("sqlite_autoindex_run_1", INDEX)]);
    assert!(fs::metadata(&path).unwrap().len() < 300_000);
    let store = Store::open_read_only(&path).unwrap();
    given_up(store.runs());
    given_up(store.run_ids());
    given_up(store.headers());
    given_up(store.find("last"));
    given_up(store.empty_runs());
    given_up(store.extent());
    given_up(Store::look(&path));
    let source = Source::open(&path).unwrap();
    let mut own = Store::open(&directory.path().join("own.db")).unwrap();
    let here = sample::header("0000000f").host;
    let how = Importing { host: Some("stranger"), here: &here, now_unix_ns: 7 };
    given_up(own.import(&source, &how));

    let path = directory.path().join("slices.db");
    endless(&path, &[("slice", TABLE)]);
    let store = Store::open_read_only(&path).unwrap();
    let source = Source::open(&path).unwrap();
    let imported = own.import(&source, &how).unwrap();
    assert!(matches!(&imported[0].fate, iolens_store::Fate::Refused(_)), "{imported:?}");
    assert!(store.load("0000000a").is_err());
}
