-- Version 7: notifications of zero-copy sends as the kernel delivered them. NULL in rows of older
-- versions, and for arms that send no such thing.

ALTER TABLE slice ADD COLUMN tx_zerocopy_notifications INTEGER;
ALTER TABLE slice ADD COLUMN rx_zerocopy_notifications INTEGER;
