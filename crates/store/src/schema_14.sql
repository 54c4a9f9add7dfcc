-- Version 14.
--
-- Counts that some slice of a run has, by the names of their columns: the others are NULL in all of
-- its slices, as most are in any one run, and are not read. Of runs of older versions nothing is
-- named here, and all columns are read.

CREATE TABLE run_count (
    run   INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    name  TEXT NOT NULL,
    PRIMARY KEY (run, name)
) STRICT, WITHOUT ROWID;
