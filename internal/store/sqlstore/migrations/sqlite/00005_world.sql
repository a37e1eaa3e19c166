-- +goose Up
-- The facts of the world, one row for each scope that a fact stands in. seq has no gaps within a scope; times are in
-- nanoseconds since 1970, 0 for none; data is a JSON object, NULL for none.
CREATE TABLE world (
    scope    TEXT NOT NULL,
    seq      BIGINT NOT NULL,
    id       TEXT NOT NULL,
    provider TEXT NOT NULL,
    source   TEXT NOT NULL,
    kind     TEXT NOT NULL,
    time     BIGINT NOT NULL,
    occurred BIGINT NOT NULL,
    summary  TEXT NOT NULL,
    data     BLOB,
    call     TEXT NOT NULL,
    PRIMARY KEY (scope, seq)
) WITHOUT ROWID;
-- An event may come again. The fact of a call cannot: it is put when the call's intent is closed.
CREATE UNIQUE INDEX world_event ON world (id, scope) WHERE call = '';

-- Where an interrupted call would have published, and whose it is: '' for calls of an earlier version, which did not.
ALTER TABLE open_intent ADD COLUMN provider TEXT NOT NULL DEFAULT '';
ALTER TABLE open_intent ADD COLUMN publish TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE open_intent DROP COLUMN publish;
ALTER TABLE open_intent DROP COLUMN provider;
DROP TABLE world;
