-- Version 16.
--
-- Where a run came from that was imported. A run without a row here was measured into this file,
-- as all of older versions were.

CREATE TABLE origin (
    run               INTEGER PRIMARY KEY REFERENCES run ON DELETE CASCADE,
    host              TEXT NOT NULL,     -- label; two machines never have one label
    path              TEXT NOT NULL,     -- of the file that was imported
    imported_unix_ns  INTEGER NOT NULL
) STRICT;
