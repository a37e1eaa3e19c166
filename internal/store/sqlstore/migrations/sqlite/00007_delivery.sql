-- +goose Up
-- A held result that its caller may still be given: what a later call must be to get it, what is known of the call that it is
-- the result of, and the call that was given it. Empty and 0 for none.
ALTER TABLE evidence ADD COLUMN claim BLOB NOT NULL DEFAULT x'';
ALTER TABLE evidence ADD COLUMN outcome TEXT NOT NULL DEFAULT '';
ALTER TABLE evidence ADD COLUMN delivered_to TEXT NOT NULL DEFAULT '';
ALTER TABLE evidence ADD COLUMN delivered BIGINT NOT NULL DEFAULT 0;

-- The item that a request asks to release; '' for a request to let a call out.
ALTER TABLE approval ADD COLUMN evidence TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE approval DROP COLUMN evidence;
ALTER TABLE evidence DROP COLUMN delivered;
ALTER TABLE evidence DROP COLUMN delivered_to;
ALTER TABLE evidence DROP COLUMN outcome;
ALTER TABLE evidence DROP COLUMN claim;
