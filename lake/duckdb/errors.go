package duckdb

import (
	"errors"

	"github.com/skipprd/skipprd/lake/duckdb/driver"
)

// EngineError is an error that the engine reported for a statement.
type EngineError = driver.Error

// ErrorKind is what an EngineError says, as far as a caller acts on it.
type ErrorKind = driver.ErrorKind

// The kinds of engine errors.
const (
	KindOther          = driver.Other
	KindSyntax         = driver.Syntax
	KindBinder         = driver.Binder
	KindCatalog        = driver.Catalog
	KindInvalidText    = driver.InvalidText
	KindOutOfRange     = driver.OutOfRange
	KindDivisionByZero = driver.DivisionByZero
	KindInvalidInput   = driver.InvalidInput
	KindNotSupported   = driver.NotSupported
	KindOutOfMemory    = driver.OutOfMemory
	KindInterrupted    = driver.Interrupted
	KindIO             = driver.IO
	KindInternal       = driver.Internal
)

// ErrSliceLost says that a live slice of the plan was reclaimed: the caller pins
// again (P3).
var ErrSliceLost = errors.New("slice lost")

// ErrCorrupt says that the bytes of a live slice are damaged (D1).
var ErrCorrupt = errors.New("slice is corrupt")

// ErrWorkerDied says that the worker process ended while it answered, or is not up.
var ErrWorkerDied = errors.New("engine worker died")

// ErrOutOfMemory says that the query needs more than the worker's memory limit.
// Every EngineError of KindOutOfMemory wraps it.
var ErrOutOfMemory = driver.ErrOutOfMemory

// ErrPlan says that a plan contradicts itself. It is a fault of the caller.
var ErrPlan = errors.New("invalid plan")

// ErrClosed says that the pool was closed.
var ErrClosed = errors.New("engine pool is closed")
