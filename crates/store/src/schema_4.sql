-- Version 4: the receivers of a run, for its data paths. NULL in rows of older versions,
-- whose only receiver was `recv`.

ALTER TABLE run ADD COLUMN receivers_json TEXT;
