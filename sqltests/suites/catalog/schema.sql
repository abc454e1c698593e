CREATE TABLE public.customer (id bigint PRIMARY KEY, name varchar(40) NOT NULL, email text, born date, score numeric(10,2) DEFAULT 0, active boolean NOT NULL DEFAULT true, at timestamptz, tags text[], doc jsonb, u uuid, f4 real, f8 double precision, b bytea, sm smallint, i integer, c char(3), ts timestamp(3), t time, n numeric, iv interval);
CREATE TABLE public."Order Line" (order_id integer, line integer, "Qty" numeric(12,3), note text, PRIMARY KEY (line, order_id));
CREATE TABLE public.loose (a int, b text);
