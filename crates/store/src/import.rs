//! Runs of other files come into this one: whole, once, and with the machine that measured them.

use std::path::Path;

use iolens_model::host::HostFacts;
use iolens_model::origin::{Origin, Sighting, label, told_apart};
use iolens_model::run::RunHeader;
use rusqlite::{Transaction, TransactionBehavior, params};
use serde::Serialize;

use crate::lines::{Lines, Taken};
use crate::read::readable_id;
use crate::{Source, Store, StoreError, row};

/// What is known while runs are imported.
#[derive(Debug, Clone, Copy)]
pub struct Importing<'a> {
    /// The label that the runs get; null for the one that they have, the host name that was
    /// read, or else the stem of the file.
    pub host: Option<&'a str>,
    /// The machine that this is, whose host name is no label for another.
    pub here: &'a HostFacts,
    /// Now, nanoseconds since 1970 (UTC).
    pub now_unix_ns: u64,
}

/// A run of a file that is imported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Imported {
    /// Its id.
    pub id: String,
    /// The user's name for it.
    pub name: Option<String>,
    /// What was studied.
    pub study: String,
    /// Start, nanoseconds since 1970 (UTC).
    pub started_unix_ns: u64,
    /// The label of the machine that measured it.
    pub host: String,
    /// Trials, failed and skipped ones too.
    pub trials: u64,
    /// Phases of searches.
    pub phases: u64,
    /// Sampled trials.
    pub profiles: u64,
    /// What became of it.
    pub fate: Fate,
}

/// What became of a run that was to be imported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// It is there now.
    Imported,
    /// It was there before, with the same content.
    AlreadyThere,
    /// It was left out, and what is there was left alone: why.
    Refused(String),
}

/// A machine by the label that it has here.
struct Known {
    label: String,
    host: HostFacts,
    first_unix_ns: u64,
    last_unix_ns: u64,
    /// What it is known from, in words.
    from: String,
}

impl Known {
    fn of(header: &RunHeader) -> Option<Known> {
        let seen = header.sighting();
        Some(Known {
            label: header.host_label()?.to_owned(),
            host: header.host.clone(),
            first_unix_ns: seen.first_unix_ns,
            last_unix_ns: seen.last_unix_ns,
            from: format!("run {}", header.id),
        })
    }

    fn sighting(&self) -> Sighting<'_> {
        let (first_unix_ns, last_unix_ns) = (self.first_unix_ns, self.last_unix_ns);
        Sighting { host: &self.host, first_unix_ns, last_unix_ns }
    }
}

impl Store {
    /// Copies the runs of a source that are not here yet, each in one transaction with all
    /// that is stored of it, and says of each what became of it. A run is known by its id:
    /// one that is here with the same content is left as it is, and one with other content is
    /// refused, as is one whose label another machine has here.
    ///
    /// # Errors
    /// What SQLite says; runs that were copied before stay.
    pub fn import(
        &mut self,
        source: &Source,
        how: &Importing<'_>,
    ) -> Result<Vec<Imported>, StoreError> {
        let mut known: Vec<Known> = self.headers()?.iter().filter_map(Known::of).collect();
        known.extend(how.here.name().map(|name| Known {
            label: name.to_owned(),
            host: how.here.clone(),
            first_unix_ns: how.now_unix_ns,
            last_unix_ns: how.now_unix_ns,
            from: "this machine".to_owned(),
        }));
        let here = self.run_ids()?;
        let mut all = Vec::new();
        for id in source.store.run_ids()? {
            let found = source.store.imported(&id, how)?;
            let (mut run, header) = match found {
                Ok(found) => found,
                Err(unread) => {
                    all.push(unread);
                    continue;
                }
            };
            run.fate = if here.contains(&id) {
                let fate = self.held_against(&source.store, &id);
                of_this_run(fate, |why| {
                    format!(
                        "a run with this id is here already, and cannot be read: {why}\n  \
                         `iolens rm {id}` and import again"
                    )
                })?
            } else if let Some(why) = mixed(&run.host, &header, &known) {
                Fate::Refused(why)
            } else {
                let copied = self.copy(source, &id, &run.host, how.now_unix_ns);
                of_this_run(copied.map(|()| Fate::Imported), |why| why)?
            };
            if run.fate == Fate::Imported {
                known.extend(Known::of(&RunHeader {
                    origin: Some(Origin {
                        host: run.host.clone(),
                        path: String::new(),
                        imported_unix_ns: how.now_unix_ns,
                    }),
                    ..header
                }));
            }
            all.push(run);
        }
        Ok(all)
    }

    /// A whole run as lines, each with its end; `see` takes them one by one.
    ///
    /// # Errors
    /// [`StoreError::NoSuchRun`], damaged rows, or what SQLite says.
    pub fn lines(&self, run_id: &str, mut see: impl FnMut(&str)) -> Result<(), StoreError> {
        let key = self.run_key(run_id)?;
        self.snapshot("read a run", |connection| {
            let mut lines = Lines::of(connection, key)?;
            while let Some(mut line) = lines.next()? {
                line.push('\n');
                see(&line);
            }
            Ok(())
        })
    }

    /// Refuses a run that begins under the label of another machine, of which runs were
    /// imported.
    pub(crate) fn refuse_taken_label(&self, header: &RunHeader) -> Result<(), StoreError> {
        let Some(label) = header.host.name() else { return Ok(()) };
        let ids = self.snapshot("look for labels of hosts", |connection| {
            let sql = "SELECT id FROM run JOIN origin USING (run) WHERE origin.host = ?";
            let mut statement = connection.prepare_cached(sql)?;
            let ids = statement.query_map([label], readable_id)?;
            ids.collect::<rusqlite::Result<Vec<_>>>()
        })?;
        for run in ids {
            let other = match self.header_with_end(&run) {
                // Nobody can tell what machine a damaged run is of.
                Err(StoreError::Damaged { .. }) => continue,
                other => other?,
            };
            if let Some(why) = told_apart(&header.sighting(), &other.sighting()) {
                let (path, label) = (self.path.clone(), label.to_owned());
                return Err(StoreError::LabelTaken { path, label, run, why });
            }
        }
        Ok(())
    }

    /// A run of this source as it is to be imported, with its label; or, where it cannot be
    /// read, why not.
    fn imported(
        &self,
        id: &str,
        how: &Importing<'_>,
    ) -> Result<Result<(Imported, RunHeader), Imported>, StoreError> {
        let mut run = Imported {
            id: id.to_owned(),
            name: None,
            study: String::new(),
            started_unix_ns: 0,
            host: how.host.unwrap_or_default().to_owned(),
            trials: 0,
            phases: 0,
            profiles: 0,
            fate: Fate::Imported,
        };
        if let Err(unfit) = self.readable(id) {
            run.fate = Fate::Refused(format!("it cannot be read: {}", unfit.why));
            return Ok(Err(run));
        }
        let header = self.header_with_end(id)?;
        let key = self.run_key(id)?;
        let count = |table: &str| {
            let sql = format!("SELECT count(*) FROM {table} WHERE run = ?");
            self.connection().query_row(&sql, [key], |row| row.get(0))
        };
        let counts = ["trial", "search_phase", "profile"].map(count);
        let failed = self.failed("count the rows of a run");
        let [trials, phases, profiles] = counts.map(|count| count.map_err(&failed));
        (run.trials, run.phases, run.profiles) = (trials?, phases?, profiles?);
        run.name.clone_from(&header.name);
        run.study = header.plan.study().word().to_owned();
        run.started_unix_ns = header.started_unix_ns;
        let stem = || label_of_file(&self.path);
        let own = || header.host_label().and_then(|own| label(own).ok()).unwrap_or_else(stem);
        run.host = how.host.map_or_else(own, str::to_owned);
        Ok(Ok((run, header)))
    }

    /// What a run is that is here already: the same, or another one.
    fn held_against(&self, other: &Store, id: &str) -> Result<Fate, StoreError> {
        let mine = Lines::of(self.connection(), self.run_key(id)?);
        let theirs = Lines::of(&other.connection, other.run_key(id)?);
        let failed = self.failed("compare a run");
        let (mut mine, mut theirs) = (mine.map_err(&failed)?, theirs.map_err(&failed)?);
        loop {
            let pair = (mine.next().map_err(&failed)?, theirs.next().map_err(&failed)?);
            match pair {
                (None, None) => return Ok(Fate::AlreadyThere),
                (mine, theirs) if mine == theirs => {}
                _ => break,
            }
        }
        let trials = |store: &Store| {
            let sql = "SELECT count(*) FROM trial JOIN run USING (run) WHERE id = ?";
            store.connection.query_row(sql, [id], |row| row.get::<_, u64>(0))
        };
        let (mine, theirs) = (trials(self).map_err(&failed)?, trials(other).map_err(&failed)?);
        let how = match mine == theirs {
            true => "with other content".to_owned(),
            false => format!("with {mine} trials, and the file has {theirs}"),
        };
        Ok(Fate::Refused(format!(
            "a run with this id is here already, {how}; it was left as it is\n  \
             if the one of the file goes on with it, `iolens rm {id}` and import again"
        )))
    }

    /// Copies a run line by line, all of it or nothing.
    fn copy(
        &mut self,
        source: &Source,
        id: &str,
        host: &str,
        now_unix_ns: u64,
    ) -> Result<(), StoreError> {
        let path = std::path::absolute(source.path()).unwrap_or(source.path().to_owned());
        let failed = self.failed("import a run");
        let of_source = source.store.failed("read a run");
        let begin = TransactionBehavior::Immediate;
        let transaction = Transaction::new_unchecked(self.connection(), begin).map_err(&failed)?;
        let key = source.store.run_key(id)?;
        let mut lines = Lines::of(&source.store.connection, key).map_err(&of_source)?;
        let mut taken = Taken::into(&transaction).map_err(&failed)?;
        while let Some(line) = lines.next().map_err(&of_source)? {
            taken.line(&line).map_err(|why| StoreError::NotImported {
                path: path.clone(),
                line: None,
                why: format!("it cannot be stored: {why}"),
            })?;
        }
        let (run, _) = taken.run().ok_or_else(|| self.no_such_run(id))?;
        let values = params![
            run,
            host,
            path.to_string_lossy(),
            row::integer("the time of the import", now_unix_ns)?,
        ];
        let sql = "INSERT INTO origin (run, host, path, imported_unix_ns) VALUES (?, ?, ?, ?)";
        transaction.execute(sql, values).map_err(&failed)?;
        transaction.commit().map_err(&failed)
    }
}

/// What is wrong with one run refuses that one; what is wrong with a file ends the import.
fn of_this_run(
    fate: Result<Fate, StoreError>,
    words: impl Fn(String) -> String,
) -> Result<Fate, StoreError> {
    match fate {
        Err(StoreError::Damaged { why, .. } | StoreError::NotImported { why, .. }) => {
            Ok(Fate::Refused(words(why)))
        }
        other => other,
    }
}

/// Why a run cannot have this label: a machine has it that is another one. Null where none is
/// known to be.
fn mixed(label: &str, header: &RunHeader, known: &[Known]) -> Option<String> {
    let seen = header.sighting();
    let others = known.iter().filter(|known| known.label == label);
    others
        .filter_map(|other| told_apart(&seen, &other.sighting()).map(|why| (other, why)))
        .next()
        .map(|(other, why)| {
            format!(
                "`{label}` is the label of another machine, that of {} ({why})\n  import the \
                 file with --host NAME, a label of its own",
                other.from
            )
        })
}

/// The label of machines whose name was not read: the file's name without what is behind its
/// last dot, of which each mark that a label cannot have is a `-`.
fn label_of_file(path: &Path) -> String {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let plain = |c: char| if label(&c.to_string()).is_ok() { c } else { '-' };
    let stem: String = stem.unwrap_or_default().chars().map(plain).take(64).collect();
    if stem.is_empty() { "unnamed".to_owned() } else { stem }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_gives_a_label_that_is_one() {
        for (path, expect) in [
            ("/a/node 7.db", "node-7"),
            ("results.json", "results"),
            ("x.tar.db", "x.tar"),
            ("/", "unnamed"),
            (".db", ".db"),
        ] {
            assert_eq!(label_of_file(Path::new(path)), expect);
        }
        assert!(label(&label_of_file(Path::new(&"é".repeat(200)))).is_ok());
    }
}
