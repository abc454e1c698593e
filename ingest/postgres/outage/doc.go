// Package outage says in words for users why a PostgreSQL server could not be used: no
// connection was made, it broke, or the server refused. The errors keep what a log needs.
// No I/O, no clock, no logging here.
package outage
