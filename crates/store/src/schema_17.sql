-- Version 17.
--
-- What an end of a trial says of itself is the same in nearly every trial of a cell, and was two
-- thirds of what was stored of a small one: each text is stored once in a run, and of a trial
-- which one it is, and what it alone has.

CREATE TABLE end_facts (
    run         INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    number      INTEGER NOT NULL,  -- from 0, in the order in which they were first said
    facts_json  TEXT NOT NULL,     -- without what trials alone have
    PRIMARY KEY (run, number)
) STRICT;
CREATE UNIQUE INDEX end_facts_by_text ON end_facts (run, facts_json);

ALTER TABLE trial RENAME COLUMN tx_json TO tx_own_json;  -- what this trial alone has
ALTER TABLE trial RENAME COLUMN rx_json TO rx_own_json;
ALTER TABLE trial ADD COLUMN tx_facts INTEGER;  -- in end_facts; NULL: this end never answered
ALTER TABLE trial ADD COLUMN rx_facts INTEGER;

-- What is no JSON stays what it is, and is met when its run is read.

INSERT INTO end_facts (run, number, facts_json)
SELECT run, row_number() OVER (PARTITION BY run ORDER BY min(place)) - 1, facts_json
FROM (
    SELECT run, 2 * trial AS place, json_remove(json_set(tx_own_json, '$.bracket_ns', 0),
        '$.by_pmu', '$.starts', '$.strangers', '$.min_round_trip_ns') AS facts_json
    FROM trial WHERE json_valid(tx_own_json)
    UNION ALL
    SELECT run, 2 * trial + 1, json_remove(json_set(rx_own_json, '$.bracket_ns', 0),
        '$.by_pmu', '$.starts', '$.strangers', '$.min_round_trip_ns')
    FROM trial WHERE json_valid(rx_own_json)
)
GROUP BY run, facts_json;

-- A patch of JSON leaves out what is null (RFC 7396).

UPDATE trial SET
    tx_facts = (
        SELECT number FROM end_facts
        WHERE end_facts.run = trial.run
        AND facts_json = json_remove(json_set(tx_own_json, '$.bracket_ns', 0),
            '$.by_pmu', '$.starts', '$.strangers', '$.min_round_trip_ns')
    ),
    tx_own_json = json_patch('{}', json_object(
        'bracket_ns', tx_own_json -> '$.bracket_ns',
        'by_pmu', tx_own_json -> '$.by_pmu',
        'starts', tx_own_json -> '$.starts',
        'strangers', tx_own_json -> '$.strangers',
        'min_round_trip_ns', tx_own_json -> '$.min_round_trip_ns'
    ))
WHERE json_valid(tx_own_json);

UPDATE trial SET
    rx_facts = (
        SELECT number FROM end_facts
        WHERE end_facts.run = trial.run
        AND facts_json = json_remove(json_set(rx_own_json, '$.bracket_ns', 0),
            '$.by_pmu', '$.starts', '$.strangers', '$.min_round_trip_ns')
    ),
    rx_own_json = json_patch('{}', json_object(
        'bracket_ns', rx_own_json -> '$.bracket_ns',
        'by_pmu', rx_own_json -> '$.by_pmu',
        'starts', rx_own_json -> '$.starts',
        'strangers', rx_own_json -> '$.strangers',
        'min_round_trip_ns', rx_own_json -> '$.min_round_trip_ns'
    ))
WHERE json_valid(rx_own_json);
