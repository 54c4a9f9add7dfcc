-- Version 10.
--
-- What came of a server besides the counts of its slices. NULL in other studies, where an arm did
-- not begin, and in rows of older versions.

ALTER TABLE arm ADD COLUMN server_json TEXT;
