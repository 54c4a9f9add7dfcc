-- Version 15.
--
-- The machine at the other end of a run, and what was around a trial there; NULL where both ends
-- are on one machine, as in all runs of older versions.

ALTER TABLE run ADD COLUMN far_json TEXT;
ALTER TABLE trial ADD COLUMN far_environment_json TEXT;
