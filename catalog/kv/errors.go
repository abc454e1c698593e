package kv

import "errors"

var (
	// ErrNotFound means that the key has no value.
	ErrNotFound = errors.New("key not found")
	// ErrClosed means that the store, snapshot or batch was closed before the call.
	ErrClosed = errors.New("store is closed")
	// ErrEmptyKey means that a key is empty.
	ErrEmptyKey = errors.New("key is empty")
	// Stop ends an iteration without an error, as fs.SkipAll does a walk.
	//
	//lint:ignore ST1012 It is no error.
	Stop = errors.New("stop iteration")
)
