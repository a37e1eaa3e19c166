-- +goose Up
-- What the firewall held. Times are in nanoseconds since 1970, 0 for none; kept is the size of the sealed payload.
CREATE TABLE evidence (
    seq         INTEGER PRIMARY KEY,
    id          TEXT NOT NULL UNIQUE,
    call        TEXT NOT NULL,
    session     TEXT NOT NULL,
    principal   TEXT NOT NULL,
    provider    TEXT NOT NULL,
    tool        TEXT NOT NULL,
    direction   TEXT NOT NULL,
    verdict     TEXT NOT NULL,
    reasons     TEXT NOT NULL,
    sensitivity TEXT NOT NULL,
    excerpt     TEXT NOT NULL,
    sha256      BLOB NOT NULL,
    size        BIGINT NOT NULL,
    created     BIGINT NOT NULL,
    expires     BIGINT NOT NULL,
    kept        BIGINT NOT NULL,

    state         TEXT NOT NULL,
    decision      TEXT NOT NULL,
    decider       TEXT NOT NULL,
    decided       BIGINT NOT NULL,
    reason        TEXT NOT NULL,
    purger        TEXT NOT NULL,
    purged        BIGINT NOT NULL,
    purge_reason  TEXT NOT NULL
);
CREATE INDEX evidence_call ON evidence (call) WHERE call <> '';
CREATE INDEX evidence_state ON evidence (state, seq);
CREATE INDEX evidence_kept ON evidence (expires, kept) WHERE state <> 'PURGED';

-- In a table of its own, so that to list evidence does not read past it.
CREATE TABLE evidence_payload (
    id     TEXT PRIMARY KEY,
    sealed BLOB NOT NULL
);

-- +goose Down
DROP TABLE evidence_payload;
DROP TABLE evidence;
