-- Version 1. Nothing here is ever updated: runs, trials and ends are inserted,
-- and `iolens rm` removes a run whole. Derived numbers have no column.

CREATE TABLE run (
    run               INTEGER PRIMARY KEY AUTOINCREMENT,  -- order of begin
    id                TEXT NOT NULL UNIQUE,
    name              TEXT,
    started_unix_ns   INTEGER NOT NULL,
    build             TEXT NOT NULL,
    study             TEXT NOT NULL,
    command_json      TEXT NOT NULL,
    plan_json         TEXT NOT NULL,
    primitives_json   TEXT NOT NULL,
    host_json         TEXT NOT NULL,
    calibration_json  TEXT NOT NULL
) STRICT;

-- A run that was resumed ends more than once. Its end is the latest one, and
-- only as long as no trial came after it.
CREATE TABLE run_end (
    run_end           INTEGER PRIMARY KEY AUTOINCREMENT,
    run               INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    trials            INTEGER NOT NULL,  -- trials of the run when it ended
    finished_unix_ns  INTEGER NOT NULL,
    stopped_by        TEXT NOT NULL,
    unmet_json        TEXT NOT NULL
) STRICT;
CREATE INDEX run_end_by_run ON run_end (run, run_end);

CREATE TABLE trial (
    trial             INTEGER PRIMARY KEY AUTOINCREMENT,  -- order of append
    run               INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    pass              INTEGER NOT NULL,
    position          INTEGER NOT NULL,
    isolated          INTEGER NOT NULL CHECK (isolated IN (0, 1)),
    topology          TEXT NOT NULL,
    mode              TEXT NOT NULL,
    working_set       TEXT NOT NULL,
    fields            INTEGER NOT NULL,
    iovec             TEXT NOT NULL,
    receiver          TEXT NOT NULL,
    threads           INTEGER NOT NULL,
    message_bytes     INTEGER NOT NULL,
    started_unix_ns   INTEGER NOT NULL,
    duration_ns       INTEGER NOT NULL,
    status            TEXT NOT NULL,
    reason            TEXT,
    environment_json  TEXT NOT NULL,
    tx_json           TEXT,  -- NULL: this end never answered
    rx_json           TEXT
) STRICT;
CREATE INDEX trial_by_run ON trial (run, trial);

CREATE TABLE arm (
    trial              INTEGER NOT NULL REFERENCES trial ON DELETE CASCADE,
    arm                INTEGER NOT NULL,  -- from 0, in the order of the trial
    label              TEXT NOT NULL,
    primitive          TEXT NOT NULL,
    role               TEXT NOT NULL,
    status             TEXT NOT NULL,
    reason             TEXT,
    copies_sender      REAL,
    copies_end_to_end  REAL,
    latency_json       TEXT,  -- NULL: no requests in this mode
    PRIMARY KEY (trial, arm)
) STRICT, WITHOUT ROWID;

-- NULL is "not measured"; the reason stands in the end's facts. All rx_
-- columns are NULL for an arm without a receiving end.
CREATE TABLE slice (
    trial                    INTEGER NOT NULL,
    seq                      INTEGER NOT NULL,
    round                    INTEGER NOT NULL,
    kind                     TEXT NOT NULL,
    arm                      INTEGER NOT NULL,
    all_active_ns            INTEGER NOT NULL,
    tx_messages              INTEGER NOT NULL,
    tx_bytes                 INTEGER NOT NULL,
    tx_calls                 INTEGER NOT NULL,
    tx_time_ns               INTEGER NOT NULL,
    tx_task_clock_ns         INTEGER,
    tx_voluntary_switches    INTEGER,
    tx_involuntary_switches  INTEGER,
    tx_migrations            INTEGER,
    tx_minor_faults          INTEGER,
    tx_major_faults          INTEGER,
    tx_retransmits           INTEGER,
    tx_softirq_ticks         INTEGER,
    tx_zerocopy_sends        INTEGER,
    tx_zerocopy_completions  INTEGER,
    tx_zerocopy_copied       INTEGER,
    tx_enobufs               INTEGER,
    tx_cycles_user           INTEGER,
    tx_cycles_kernel         INTEGER,
    tx_instructions_user     INTEGER,
    tx_instructions_kernel   INTEGER,
    tx_l1d_loads             INTEGER,
    tx_l1d_misses            INTEGER,
    tx_llc_references        INTEGER,
    tx_llc_misses            INTEGER,
    rx_messages              INTEGER,
    rx_bytes                 INTEGER,
    rx_calls                 INTEGER,
    rx_time_ns               INTEGER,
    rx_task_clock_ns         INTEGER,
    rx_voluntary_switches    INTEGER,
    rx_involuntary_switches  INTEGER,
    rx_migrations            INTEGER,
    rx_minor_faults          INTEGER,
    rx_major_faults          INTEGER,
    rx_retransmits           INTEGER,
    rx_softirq_ticks         INTEGER,
    rx_zerocopy_sends        INTEGER,
    rx_zerocopy_completions  INTEGER,
    rx_zerocopy_copied       INTEGER,
    rx_enobufs               INTEGER,
    rx_cycles_user           INTEGER,
    rx_cycles_kernel         INTEGER,
    rx_instructions_user     INTEGER,
    rx_instructions_kernel   INTEGER,
    rx_l1d_loads             INTEGER,
    rx_l1d_misses            INTEGER,
    rx_llc_references        INTEGER,
    rx_llc_misses            INTEGER,
    PRIMARY KEY (trial, seq),
    FOREIGN KEY (trial, arm) REFERENCES arm ON DELETE CASCADE,
    CHECK ((rx_messages IS NULL) = (rx_bytes IS NULL)
       AND (rx_messages IS NULL) = (rx_calls IS NULL)
       AND (rx_messages IS NULL) = (rx_time_ns IS NULL))
) STRICT, WITHOUT ROWID;
