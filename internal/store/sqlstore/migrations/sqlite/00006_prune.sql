-- +goose Up
-- A record whose content was taken away names the record that did so; its session, principal and body are empty then.
ALTER TABLE ledger ADD COLUMN pruned BIGINT NOT NULL DEFAULT 0;
-- Records of no call are few, and are looked for by their kind.
CREATE INDEX ledger_kind ON ledger (kind) WHERE call = '';

-- +goose Down
DROP INDEX ledger_kind;
ALTER TABLE ledger DROP COLUMN pruned;
