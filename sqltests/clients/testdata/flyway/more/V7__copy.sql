CREATE TABLE countries (code char(2) PRIMARY KEY, name text NOT NULL);
COPY countries (code, name) FROM stdin;
de	Germany
fr	France
\.
CREATE TABLE archived (LIKE orders INCLUDING ALL);
CREATE TABLE recent AS SELECT id, placed FROM orders WHERE placed > '2024-01-02' WITH DATA;
