-- Version 7.
--
-- Settings of a cell that a run had one of each of before, which then stand in its plan. `ip` is
-- NULL in rows of older versions and in no other; NULL in the others is "does not apply", and of
-- reap_batch "when needed".

ALTER TABLE trial ADD COLUMN ip TEXT;
ALTER TABLE trial ADD COLUMN mtu_bytes INTEGER;
ALTER TABLE trial ADD COLUMN socket_buffer INTEGER;
ALTER TABLE trial ADD COLUMN receive_size INTEGER;
ALTER TABLE trial ADD COLUMN reap_batch INTEGER;
ALTER TABLE trial ADD COLUMN uring_depth INTEGER;
ALTER TABLE trial ADD COLUMN uring_batch INTEGER;

-- Notifications of zero-copy sends as the kernel delivered them. NULL in rows of older versions,
-- and for arms that send no such thing.

ALTER TABLE slice ADD COLUMN tx_zerocopy_notifications INTEGER;
ALTER TABLE slice ADD COLUMN rx_zerocopy_notifications INTEGER;

-- Requests of a multishot receiver that were handed over again, and those that ended
-- because the ring of provided buffers was empty. NULL in rows of older versions, for other
-- receivers, and at the sending end, which has the columns because both ends have the same.

ALTER TABLE slice ADD COLUMN tx_rearms INTEGER;
ALTER TABLE slice ADD COLUMN tx_ring_enobufs INTEGER;
ALTER TABLE slice ADD COLUMN rx_rearms INTEGER;
ALTER TABLE slice ADD COLUMN rx_ring_enobufs INTEGER;
