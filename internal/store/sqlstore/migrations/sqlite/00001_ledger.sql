-- +goose Up
CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

-- One row a record. seq has no gaps; time is in nanoseconds since 1970; body is canonical JSON.
CREATE TABLE ledger (
    seq       INTEGER PRIMARY KEY,
    time      BIGINT NOT NULL,
    kind      TEXT NOT NULL,
    call      TEXT NOT NULL,
    session   TEXT NOT NULL,
    principal TEXT NOT NULL,
    body      BLOB NOT NULL,
    prev      BLOB NOT NULL,
    hash      BLOB NOT NULL
);
CREATE INDEX ledger_call ON ledger (call) WHERE call <> '';

-- The signed checkpoints, each with the right edge of the tree that it signs, so that a start hashes only what came after.
CREATE TABLE checkpoint (
    seq  INTEGER PRIMARY KEY,
    note BLOB NOT NULL,
    edge BLOB NOT NULL
);

-- Calls that were let through and have no outcome. Only those whose two ends fall into different commits are ever here.
CREATE TABLE open_intent (
    id        INTEGER PRIMARY KEY,
    call      TEXT NOT NULL,
    seq       BIGINT NOT NULL,
    started   BIGINT NOT NULL,
    principal TEXT NOT NULL,
    session   TEXT NOT NULL,
    tool      TEXT NOT NULL
);

-- +goose Down
DROP TABLE open_intent;
DROP TABLE checkpoint;
DROP TABLE ledger;
DROP TABLE meta;
