CREATE TABLE c (id bigint PRIMARY KEY, name varchar(40) NOT NULL, email text, born date, score numeric(10,2) DEFAULT 0, active boolean NOT NULL DEFAULT true, at timestamptz, tags text[], doc jsonb, u uuid, f4 real, f8 double precision, b bytea, sm smallint, i integer, c3 char(3), ts timestamp(3), t time, n numeric, iv interval, ints int[], js json)
CREATE TABLE o (id int, line int, customer bigint, total numeric(10,2), note text, "Qty" int, at timestamptz, PRIMARY KEY (id, line))
CREATE SCHEMA far
CREATE TABLE far.d (id bigint, v text, "odd name" text)
