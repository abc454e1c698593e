package driver

/*
#include "scan.h"
*/
import "C"

import (
	"errors"
	"unsafe"

	b "github.com/duckdb/duckdb-go-bindings"
)

func register(c b.Connection) error {
	if C.sk_register(C.duckdb_connection(unsafe.Pointer(c.Ptr))) != 0 {
		return errors.New("register functions: refused")
	}
	return nil
}
