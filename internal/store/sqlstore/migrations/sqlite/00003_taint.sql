-- +goose Up
-- What each principal's session has read: 1 untrusted, 2 private. Rows only grow, until a session is forgotten.
CREATE TABLE taint (
    principal TEXT NOT NULL,
    session   TEXT NOT NULL,
    taint     INTEGER NOT NULL,
    PRIMARY KEY (principal, session)
);

-- +goose Down
DROP TABLE taint;
