-- Version 5: segments that an end sent in a slice; NULL in rows of older versions.

ALTER TABLE slice ADD COLUMN tx_segments_out INTEGER;
ALTER TABLE slice ADD COLUMN rx_segments_out INTEGER;
