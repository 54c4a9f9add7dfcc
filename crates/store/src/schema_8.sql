-- Version 8.
--
-- Trials of other studies than `net`: the columns of its axes are NULL for them, and their cell
-- is JSON. In rows of `net` cell_json is NULL, and what was not NULL before still is not. SQLite
-- takes NOT NULL off a column only by making the table anew; the rows keep their keys.

CREATE TABLE trial_8 (
    trial             INTEGER PRIMARY KEY AUTOINCREMENT,  -- order of append
    run               INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    pass              INTEGER NOT NULL,
    position          INTEGER NOT NULL,
    isolated          INTEGER NOT NULL CHECK (isolated IN (0, 1)),
    topology          TEXT,
    mode              TEXT,
    working_set       TEXT,
    fields            INTEGER,
    iovec             TEXT,
    receiver          TEXT,
    ip                TEXT,  -- NULL in rows of net before version 7 too
    mtu_bytes         INTEGER,
    socket_buffer     INTEGER,
    receive_size      INTEGER,
    reap_batch        INTEGER,
    uring_depth       INTEGER,
    uring_batch       INTEGER,
    threads           INTEGER NOT NULL,
    message_bytes     INTEGER,
    cell_json         TEXT,
    started_unix_ns   INTEGER NOT NULL,
    duration_ns       INTEGER NOT NULL,
    status            TEXT NOT NULL,
    reason            TEXT,
    environment_json  TEXT NOT NULL,
    tx_json           TEXT,  -- NULL: this end never answered
    rx_json           TEXT,
    CHECK ((cell_json IS NULL) = (topology IS NOT NULL AND mode IS NOT NULL
        AND working_set IS NOT NULL AND fields IS NOT NULL AND iovec IS NOT NULL
        AND receiver IS NOT NULL AND message_bytes IS NOT NULL))
) STRICT;

INSERT INTO trial_8 (trial, run, pass, position, isolated, topology, mode, working_set, fields,
    iovec, receiver, ip, mtu_bytes, socket_buffer, receive_size, reap_batch, uring_depth,
    uring_batch, threads, message_bytes, started_unix_ns, duration_ns, status, reason,
    environment_json, tx_json, rx_json)
SELECT trial, run, pass, position, isolated, topology, mode, working_set, fields,
    iovec, receiver, ip, mtu_bytes, socket_buffer, receive_size, reap_batch, uring_depth,
    uring_batch, threads, message_bytes, started_unix_ns, duration_ns, status, reason,
    environment_json, tx_json, rx_json
FROM trial ORDER BY trial;

-- References of `arm` are to the name, and the name comes back: with foreign keys off, which
-- the migration sees to, dropping the old table takes no rows along.
DROP TABLE trial;
ALTER TABLE trial_8 RENAME TO trial;
CREATE INDEX trial_by_run ON trial (run, trial);

-- The calls of a run of `syscall`. NULL in rows of older versions, which had no such study.

ALTER TABLE run ADD COLUMN calls_json TEXT;
