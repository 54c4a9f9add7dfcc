-- The tables of a file of results. What is read only together is JSON, as the types of
-- crates/model give it; columns are what runs are looked up by, and the counts of slices. Rows
-- are inserted and never updated, and `iolens rm` removes a run whole.

CREATE TABLE run (
    run              INTEGER PRIMARY KEY AUTOINCREMENT,  -- order of begin
    id               TEXT NOT NULL UNIQUE,
    name             TEXT,
    started_unix_ns  INTEGER NOT NULL,
    build            TEXT NOT NULL,
    study            TEXT NOT NULL,
    confirms         TEXT,           -- id of the run whose crossovers it narrows down
    run_json         TEXT NOT NULL   -- RunHeader, without what has a column
) STRICT;

-- A run that was resumed ends more than once. Its end is the latest one, and
-- only as long as nothing came after it.
CREATE TABLE run_end (
    run_end       INTEGER PRIMARY KEY AUTOINCREMENT,
    run           INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    trials        INTEGER NOT NULL,  -- trials and phases of the run when it ended
    run_end_json  TEXT NOT NULL      -- RunEnd
) STRICT;
CREATE INDEX run_end_by_run ON run_end (run, run_end);

-- Where a run was imported from. A run without a row here was measured into this file.
CREATE TABLE origin (
    run               INTEGER PRIMARY KEY REFERENCES run ON DELETE CASCADE,
    host              TEXT NOT NULL,     -- label; two machines never have one label
    path              TEXT NOT NULL,     -- of the file that was imported
    imported_unix_ns  INTEGER NOT NULL
) STRICT;

-- What many trials of a run have alike, each text once: cells, arms, and what ends say of
-- themselves.
CREATE TABLE shared (
    run          INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    number       INTEGER NOT NULL,  -- from 0, in the order in which they came
    shared_json  TEXT NOT NULL,
    PRIMARY KEY (run, number)
) STRICT;
CREATE UNIQUE INDEX shared_by_text ON shared (run, shared_json);

-- Columns of `slice` that are not NULL in all slices of a run. Most are, and are not read.
CREATE TABLE run_count (
    run   INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    name  TEXT NOT NULL,
    PRIMARY KEY (run, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE trial (
    trial       INTEGER PRIMARY KEY AUTOINCREMENT,  -- order of append
    run         INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    cell        INTEGER NOT NULL,  -- in `shared`, as the two below
    tx          INTEGER,           -- NULL: this end never answered
    rx          INTEGER,
    trial_json  TEXT NOT NULL      -- what this trial alone has
) STRICT;
CREATE INDEX trial_by_run ON trial (run, trial);

CREATE TABLE arm (
    trial     INTEGER NOT NULL REFERENCES trial ON DELETE CASCADE,
    arm       INTEGER NOT NULL,  -- from 0, in the order of the trial
    shared    INTEGER NOT NULL,  -- in `shared`
    arm_json  TEXT NOT NULL,     -- what it has in this trial alone
    PRIMARY KEY (trial, arm)
) STRICT, WITHOUT ROWID;

-- NULL is "not measured"; the reason stands in what the end says. All rx_ columns are NULL for an
-- arm without a receiving end.
CREATE TABLE slice (
    trial          INTEGER NOT NULL,
    seq            INTEGER NOT NULL,
    round          INTEGER NOT NULL,
    kind           TEXT NOT NULL,
    arm            INTEGER NOT NULL,
    all_active_ns  INTEGER NOT NULL,
    /* tx_ and rx_ of each count */
    PRIMARY KEY (trial, seq),
    FOREIGN KEY (trial, arm) REFERENCES arm ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- Phases of searches for the highest rate at which a server keeps a limit.
CREATE TABLE search_phase (
    search_phase       INTEGER PRIMARY KEY AUTOINCREMENT,  -- order of append
    run                INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    search_phase_json  TEXT NOT NULL  -- SearchPhase
) STRICT;
CREATE INDEX search_phase_by_run ON search_phase (run, search_phase);

-- Sampled trials, apart from the timed ones.
CREATE TABLE profile (
    profile       INTEGER PRIMARY KEY AUTOINCREMENT,  -- order of append
    run           INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    profile_json  TEXT NOT NULL  -- ProfileTrial
) STRICT;
CREATE INDEX profile_by_run ON profile (run, profile);
