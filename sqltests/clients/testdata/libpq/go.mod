module github.com/skipprd/skipprd/sqltests/clients/libpq

go 1.24

require github.com/lib/pq v1.10.9
