// Package hba reads rules of host-based authentication, in the format of PostgreSQL's
// pg_hba.conf, and finds the one that decides about a client:
//
//	TYPE     DATABASE  USER            ADDRESS       METHOD         [OPTION …]
//	local    all       all                           trust
//	hostssl  all       +analysts       10.0.0.0/8    scram-sha-256
//	hostssl  all       all             0.0.0.0/0     cert           map=people
//	host     all       all             all           reject
//
// The first rule whose type, database, user and address are the client's decides; without one
// the client is turned away. Maps of names, as in pg_ident.conf, say which roles a certificate
// is for. It does no I/O.
package hba
