-- Version 9.
--
-- What was found around each slice that writes to a file, at the end that writes, which is stored
-- as the sending one: what was not on the device before and after it, and by how much the size of
-- the file was not what it should be. NULL in other studies, and in rows of older versions.

ALTER TABLE slice ADD COLUMN tx_dirty_before_bytes INTEGER;
ALTER TABLE slice ADD COLUMN tx_dirty_after_bytes INTEGER;
ALTER TABLE slice ADD COLUMN tx_size_error_bytes INTEGER;
ALTER TABLE slice ADD COLUMN rx_dirty_before_bytes INTEGER;
ALTER TABLE slice ADD COLUMN rx_dirty_after_bytes INTEGER;
ALTER TABLE slice ADD COLUMN rx_size_error_bytes INTEGER;
