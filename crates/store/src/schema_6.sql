-- Version 6: the receivers of a run, for its data paths, and what they mapped. NULL in rows of
-- older versions, whose only receiver was `recv`, which maps nothing. The sending end maps
-- nothing either; it has the column because both ends have the same.

ALTER TABLE run ADD COLUMN receivers_json TEXT;
ALTER TABLE slice ADD COLUMN tx_mapped_bytes INTEGER;
ALTER TABLE slice ADD COLUMN rx_mapped_bytes INTEGER;
