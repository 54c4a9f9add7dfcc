-- Version 11.
--
-- How many calls a program made, nobody counts: NULL, as whatever is not measured, with the reason
-- in the end's facts. Older versions wrote 0. Every engine that copies makes a call at least, so
-- that a 0 in a run of `copy` is a program's. SQLite takes NOT NULL off a column only by making it
-- anew.

ALTER TABLE slice ADD COLUMN tx_calls_11 INTEGER;
UPDATE slice SET tx_calls_11 = tx_calls
WHERE tx_calls > 0 OR trial NOT IN (
    SELECT trial.trial FROM trial JOIN run ON run.run = trial.run WHERE run.study = 'copy'
);
ALTER TABLE slice DROP COLUMN tx_calls;
ALTER TABLE slice RENAME COLUMN tx_calls_11 TO tx_calls;
