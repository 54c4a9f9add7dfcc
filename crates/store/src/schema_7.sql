-- Version 7. Notifications of zero-copy sends as the kernel delivered them. NULL in rows of older
-- versions, and for arms that send no such thing.

ALTER TABLE slice ADD COLUMN tx_zerocopy_notifications INTEGER;
ALTER TABLE slice ADD COLUMN rx_zerocopy_notifications INTEGER;

-- Requests of a multishot receiver that were handed over again, and those that ended
-- because the ring of provided buffers was empty. NULL in rows of older versions, for other
-- receivers, and at the sending end, which has the columns because both ends have the same.

ALTER TABLE slice ADD COLUMN tx_rearms INTEGER;
ALTER TABLE slice ADD COLUMN tx_ring_enobufs INTEGER;
ALTER TABLE slice ADD COLUMN rx_rearms INTEGER;
ALTER TABLE slice ADD COLUMN rx_ring_enobufs INTEGER;
