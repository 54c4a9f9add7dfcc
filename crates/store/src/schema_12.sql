-- Version 12.
--
-- Phases of searches for the highest rate at which a server keeps a limit: one row each, whatever
-- became of it. Whether it kept the limit has no column: that is computed when a run is read.

CREATE TABLE search_phase (
    search_phase      INTEGER PRIMARY KEY AUTOINCREMENT,  -- order of append
    run               INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    number            INTEGER NOT NULL,  -- from 1
    cell_json         TEXT NOT NULL,
    label             TEXT NOT NULL,
    primitive         TEXT NOT NULL,
    role              TEXT NOT NULL,
    step              INTEGER,  -- NULL: the closed loop that rates are steps from
    rate_per_s        REAL,     -- offered; NULL likewise
    phase_ns          INTEGER NOT NULL,
    dropped_ns        INTEGER NOT NULL,
    started_unix_ns   INTEGER NOT NULL,
    duration_ns       INTEGER NOT NULL,
    status            TEXT NOT NULL,
    reason            TEXT,
    latency_json      TEXT,  -- NULL in this and the two below: it did not come to its end
    server_json       TEXT,
    slice_json        TEXT,
    environment_json  TEXT NOT NULL
) STRICT;
CREATE INDEX search_phase_by_run ON search_phase (run, search_phase);
