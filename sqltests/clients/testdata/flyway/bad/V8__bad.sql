CREATE TABLE half_done (id int PRIMARY KEY);
INSERT INTO half_done VALUES (1), (1);
