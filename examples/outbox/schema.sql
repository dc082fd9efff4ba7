-- The application inserts a row in the transaction that changes what the row tells of. It locks what `key` names first (as an UPDATE
-- of it does), so that rows of one key get their ids in the order in which their transactions commit.
CREATE TABLE outbox (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key text NOT NULL,
    payload text NOT NULL,
    -- The term in which it was relayed; NULL until then.
    relayed_in bigint
);

-- What is still to be relayed is found at once, however many rows are kept.
CREATE INDEX outbox_pending ON outbox (id) WHERE relayed_in IS NULL;

-- The fence: the highest term that has begun to relay. A row of `outbox` is marked only in this term.
CREATE TABLE outbox_fence (
    relay text PRIMARY KEY,
    term bigint NOT NULL
);
