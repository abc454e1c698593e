--liquibase formatted sql

--changeset ada:m1
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
ALTER TABLE person ADD mood mood NOT NULL DEFAULT 'ok';
--rollback ALTER TABLE person DROP COLUMN mood; DROP TYPE mood;

--changeset ada:m2 splitStatements:true endDelimiter:;
--preconditions onFail:HALT onError:HALT
--precondition-sql-check expectedResult:0 SELECT count(*) FROM tag
INSERT INTO tag VALUES ('a'), ('b') ON CONFLICT DO NOTHING;
INSERT INTO tag VALUES ('a'), ('c') ON CONFLICT (name) DO UPDATE SET name = excluded.name || '2';
COMMENT ON COLUMN tag.name IS 'a word';
--rollback DELETE FROM tag;

--changeset ada:m3
ALTER TABLE person ADD CONSTRAINT ck_balance CHECK (balance >= 0);
--rollback ALTER TABLE person DROP CONSTRAINT ck_balance;

--changeset ada:m4
CREATE INDEX ix_person_lower ON person (lower(email)) WHERE active;
--rollback DROP INDEX ix_person_lower;
