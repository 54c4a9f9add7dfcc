//! Runs of other files come into this one: whole, once, and with the machine that measured them.

use std::path::Path;

use iolens_model::host::HostFacts;
use iolens_model::origin::{Origin, Sighting, label, told_apart};
use iolens_model::run::RunHeader;
use rusqlite::params;
use serde::Serialize;

use crate::lines::{Lines, Taken};
use crate::{Fault, Source, Store, StoreError, row};

/// What is known while runs are imported.
#[derive(Debug, Clone, Copy)]
pub struct Importing<'a> {
    /// The label that the runs get; `None` for the one that they have, the host name that was
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

/// Another machine that has the label of one, and what tells the two apart, in words.
type Other = (String, String);

/// Machines that are known by their labels.
struct Known<'a> {
    how: &'a Importing<'a>,
    headers: Vec<RunHeader>,
}

impl Known<'_> {
    /// The machine that has this label and is another one than that of the run.
    fn other(&self, label: &str, header: &RunHeader) -> Option<Other> {
        let now = self.how.now_unix_ns;
        let here = Sighting { host: self.how.here, first_unix_ns: now, last_unix_ns: now };
        let of_run = |known: &'_ RunHeader| known.host_label() == Some(label);
        let runs = self.headers.iter().filter(|known| of_run(known));
        let runs = runs.map(|known| (format!("run {}", known.id), known.sighting()));
        let here = (self.how.here.name() == Some(label)).then(|| ("this machine".to_owned(), here));
        let seen = header.sighting();
        runs.chain(here).find_map(|(who, other)| Some((who, told_apart(&seen, &other)?)))
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
        let (mut known, here) = (Known { how, headers: self.headers()? }, self.run_ids()?);
        let mut all = Vec::new();
        for id in source.store.run_ids()? {
            let (mut run, header) = source.store.imported(&id, how)?;
            let Some(header) = header else {
                all.push(run);
                continue;
            };
            run.fate = if here.contains(&id) {
                of_this_run(self.held_against(&source.store, &id), |why| {
                    format!(
                        "a run with this id is here already, and cannot be read: {why}\n  \
                         `iolens rm {id}` and import again"
                    )
                })?
            } else if let Some((who, why)) = known.other(&run.host, &header) {
                Fate::Refused(format!(
                    "`{}` is the label of another machine, that of {who} ({why})\n  import the file \
                     with --host NAME, a label of its own",
                    run.host
                ))
            } else {
                let origin = Origin {
                    host: run.host.clone(),
                    path: path_of(source),
                    imported_unix_ns: how.now_unix_ns,
                };
                let copied = self.copy(source, &id, &origin);
                if copied.is_ok() {
                    known.headers.push(RunHeader { origin: Some(origin), ..header });
                }
                of_this_run(copied.map(|()| Fate::Imported), |why| why)?
            };
            all.push(run);
        }
        Ok(all)
    }

    /// A whole run as lines, each with its end; `see` takes them one by one.
    ///
    /// # Errors
    /// [`StoreError::NoSuchRun`], damaged rows, or what SQLite says.
    pub fn lines(&self, run_id: &str, mut see: impl FnMut(&str)) -> Result<(), StoreError> {
        self.snapshot("read a run", |connection| {
            let mut lines = Lines::of(connection, self.key(connection, run_id)?)?;
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
        let sql = "SELECT id FROM run JOIN origin USING (run) WHERE origin.host = ?";
        for run in self.ids("look for labels of hosts", sql, [label])? {
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

    /// A run of this source as it is to be imported, with its label and its header; without that
    /// where it cannot be read.
    fn imported(
        &self,
        id: &str,
        how: &Importing<'_>,
    ) -> Result<(Imported, Option<RunHeader>), StoreError> {
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
            return Ok((run, None));
        }
        let header = self.header_with_end(id)?;
        [run.trials, run.phases, run.profiles] =
            self.doing("count the rows of a run", |connection| {
                let key = self.key(connection, id)?;
                let count = |table| row::count(connection, table, key);
                Ok([count("trial")?, count("search_phase")?, count("profile")?])
            })?;
        run.name.clone_from(&header.name);
        run.study = header.plan.study().word().to_owned();
        run.started_unix_ns = header.started_unix_ns;
        if how.host.is_none() {
            let own = header.host_label().and_then(|own| label(own).ok());
            run.host = own.unwrap_or_else(|| label_of_file(&self.path));
        }
        Ok((run, Some(header)))
    }

    /// What a run is that is here already: the same, or another one.
    fn held_against(&self, other: &Store, id: &str) -> Result<Fate, StoreError> {
        let stores = [self, other];
        let [mine, theirs] = stores.map(|store| store.key(&store.connection, id));
        self.doing("compare a run", |_| {
            let (mine, theirs) = (mine?, theirs?);
            let mut lines = Lines::of(&self.connection, mine)?;
            let mut others = Lines::of(&other.connection, theirs)?;
            loop {
                match (lines.next()?, others.next()?) {
                    (None, None) => return Ok(Fate::AlreadyThere),
                    (mine, theirs) if mine == theirs => {}
                    _ => break,
                }
            }
            let mine = row::count(&self.connection, "trial", mine)?;
            let theirs = row::count(&other.connection, "trial", theirs)?;
            let how = match mine == theirs {
                true => "with other content".to_owned(),
                false => format!("with {mine} trials, and the file has {theirs}"),
            };
            Ok(Fate::Refused(format!(
                "a run with this id is here already, {how}; it was left as it is\n  \
                 if the one of the file goes on with it, `iolens rm {id}` and import again"
            )))
        })
    }

    /// Copies a run line by line, all of it or nothing.
    fn copy(&self, source: &Source, id: &str, origin: &Origin) -> Result<(), StoreError> {
        let of_source = |fault: Fault| fault.of("read a run", source.path());
        self.commit("import a run", |connection| {
            let theirs = &source.store.connection;
            let key = source.store.key(theirs, id).map_err(of_source)?;
            let unread = |error: rusqlite::Error| of_source(error.into());
            let mut lines = Lines::of(theirs, key).map_err(unread)?;
            let mut taken = Taken::into(connection)?;
            while let Some(line) = lines.next().map_err(unread)? {
                taken.line(&line).map_err(|why| StoreError::NotImported {
                    path: origin.path.clone().into(),
                    line: None,
                    why: format!("it cannot be stored: {why}"),
                })?;
            }
            let (run, _) = taken.run().ok_or_else(|| self.no_such_run(id))?;
            let imported = row::integer("the time of the import", origin.imported_unix_ns)?;
            let values = params![run, origin.host, origin.path, imported];
            let sql = "INSERT INTO origin (run, host, path, imported_unix_ns) VALUES (?, ?, ?, ?)";
            connection.execute(sql, values)?;
            Ok(())
        })
    }
}

/// Where a source stands, as it is kept.
fn path_of(source: &Source) -> String {
    let path = std::path::absolute(source.path()).unwrap_or(source.path().to_owned());
    path.to_string_lossy().into_owned()
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
