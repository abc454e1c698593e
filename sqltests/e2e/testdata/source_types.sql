CREATE EXTENSION citext; CREATE EXTENSION hstore; CREATE EXTENSION ltree; CREATE EXTENSION cube;
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
ALTER TYPE mood ADD VALUE 'meh' BEFORE 'ok';
CREATE TYPE pair AS (a int, b text);
CREATE TYPE money_pair AS (a numeric, b text);
CREATE TYPE span AS RANGE (subtype = float8);
CREATE DOMAIN email AS citext CHECK (VALUE LIKE '%@%');
CREATE DOMAIN small AS varchar(5);
CREATE TABLE people (id int PRIMARY KEY, m mood, c citext, h hstore, p pair, mp money_pair, s span, l ltree, cu cube, e email, sm small, ms mood[], cs citext[], v varchar(7), t text);
INSERT INTO people VALUES
 (1,'happy','Ana','a=>1','(1,x)','(1.0,x)','[1,2)','a.b','(1,2)','A@x','abc','{sad,ok}','{A,b}','Ana','ana'),
 (2,'sad','ana','b=>2, a=>1','(2,y)','(1.00,x)','[1,3)','a.b.c','(1)','a@X','abd','{sad,ok}','{a,B}','ana','Ana'),
 (3,'meh','BOB','a=>1','(1,x)','(2,z)','[1,2)','a','(1,0)','b@x',NULL,'{happy}','{c}','bob','BOB'),
 (4,'ok','bob',NULL,NULL,NULL,NULL,NULL,NULL,NULL,'x',NULL,NULL,'BOB','bob'),
 (5,NULL,NULL,'b=>NULL','(,)','(1.0,x)','empty','b','(3)','c@d','y','{NULL,happy}','{NULL}',NULL,NULL),
 (6,'happy','carol','','(3,"a b")','(5,q)','(,)','z','(0)','z@z','z','{}','{}','Carol','carol');
