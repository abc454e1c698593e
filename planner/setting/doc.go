// Package setting is the registry of session settings (SET, SHOW, RESET) and a
// session's values of them with PostgreSQL's transaction rules.
//
// Reading order: Setting, Lookup, Values. Pure; Values is not safe for concurrent
// use.
package setting
