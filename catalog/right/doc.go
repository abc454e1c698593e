// Package right holds who may do what: roles, what they are members of, owners of objects, and
// privileges granted on them. A Book is all of it at one moment; an Editor changes a copy.
//
// It decides as PostgreSQL 15 does: privileges come from access lists alone, which for an
// object that nobody granted anything on are its class's (the owner has all); a role has those
// of every role it inherits from; superusers have all. What there is no role for has no rights
// but those of PUBLIC.
//
// It knows no SQL and does no I/O: planner/grant has the statements, catalog keeps the rows.
package right
