// Package grant has PostgreSQL's statements on roles and rights: CREATE, ALTER and DROP ROLE,
// GRANT, REVOKE, ALTER DEFAULT PRIVILEGES, OWNER TO, REASSIGN OWNED, DROP OWNED.
//
// A statement is prepared against a World, which finds the objects that it names, and becomes
// an Op: a change of rights alone, which can be made again on a newer book when the
// transaction commits. Errors are PostgreSQL's, with its texts and codes.
package grant
