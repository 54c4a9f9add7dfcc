-- Version 13.
--
-- Which run's crossovers a run looks at anew, by its id; NULL for a run that stands for itself,
-- as all of older versions do. That run may have been removed since.

ALTER TABLE run ADD COLUMN confirms TEXT;
