// Package allow refuses what the rights of a role do not allow statements that write.
package allow
