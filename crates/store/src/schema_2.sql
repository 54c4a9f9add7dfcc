-- Version 2: sampled trials, apart from the timed ones.

CREATE TABLE profile (
    profile            INTEGER PRIMARY KEY AUTOINCREMENT,  -- order of append
    run                INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    number             INTEGER NOT NULL,  -- from 1, within its cell
    cell_json          TEXT NOT NULL,
    started_unix_ns    INTEGER NOT NULL,
    status             TEXT NOT NULL,
    reason             TEXT,
    period_ns          INTEGER NOT NULL,
    not_measured_json  TEXT NOT NULL
) STRICT;
CREATE INDEX profile_by_run ON profile (run, profile);

CREATE TABLE profile_end (
    profile      INTEGER NOT NULL REFERENCES profile ON DELETE CASCADE,
    seq          INTEGER NOT NULL,  -- from 0
    arm          TEXT NOT NULL,
    primitive    TEXT NOT NULL,
    sends        INTEGER NOT NULL CHECK (sends IN (0, 1)),
    kernel       INTEGER NOT NULL CHECK (kernel IN (0, 1)),
    counts_json  TEXT NOT NULL,
    lost         INTEGER NOT NULL,
    stacks       TEXT NOT NULL,  -- a line per stack: its folded form, a space, samples
    PRIMARY KEY (profile, seq)
) STRICT, WITHOUT ROWID;
