-- +goose Up
-- What people were asked and what they said. Times are in nanoseconds since 1970, 0 for none.
CREATE TABLE approval (
    id               TEXT PRIMARY KEY,
    call             TEXT NOT NULL,
    call_digest      BLOB NOT NULL,
    grant_digest     BLOB NOT NULL,
    principal        TEXT NOT NULL,
    session          TEXT NOT NULL,
    tool             TEXT NOT NULL,
    descriptor       BLOB NOT NULL,
    effect           TEXT NOT NULL,
    policy           BLOB NOT NULL,
    attachment       TEXT NOT NULL,
    origin           BLOB NOT NULL,
    arguments_digest BLOB NOT NULL,
    export           TEXT NOT NULL,
    provider         TEXT NOT NULL,
    sensitivity      TEXT NOT NULL,
    summary          TEXT NOT NULL,
    arguments        TEXT NOT NULL,
    cut              INTEGER NOT NULL,
    created          BIGINT NOT NULL,
    expires          BIGINT NOT NULL,
    state            TEXT NOT NULL,
    decision         TEXT NOT NULL,
    decider          TEXT NOT NULL,
    decided          BIGINT NOT NULL,
    until            BIGINT NOT NULL,
    reason           TEXT NOT NULL,
    spent_by         TEXT NOT NULL
);
CREATE INDEX approval_created ON approval (created, id);

-- What providers offered and what was decided of it. The name "" stands for the provider itself; findings are a JSON array.
CREATE TABLE pin (
    provider   TEXT NOT NULL,
    name       TEXT NOT NULL,
    descriptor BLOB NOT NULL,
    input      BLOB NOT NULL,
    definition BLOB NOT NULL,
    findings   TEXT NOT NULL,
    state      TEXT NOT NULL,
    first_seen BIGINT NOT NULL,
    decider    TEXT NOT NULL,
    decided    BIGINT NOT NULL,
    reason     TEXT NOT NULL,
    PRIMARY KEY (provider, name, descriptor)
);

-- What must not be used until somebody has looked: a tool, or with the name "" the whole provider.
CREATE TABLE quarantine (
    provider TEXT NOT NULL,
    name     TEXT NOT NULL,
    reason   TEXT NOT NULL,
    detail   TEXT NOT NULL,
    since    BIGINT NOT NULL,
    author   TEXT NOT NULL,
    PRIMARY KEY (provider, name)
);

-- +goose Down
DROP TABLE quarantine;
DROP TABLE pin;
DROP TABLE approval;
