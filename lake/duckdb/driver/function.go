package driver

/*
#include "scan.h"
#include <stdlib.h>
*/
import "C"

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"unsafe"

	b "github.com/duckdb/duckdb-go-bindings"

	"github.com/skipprd/skipprd/lake/scalar"
)

// paramsMax is how many arguments a function may take.
const paramsMax = C.SK_PARAMS_MAX

// functionTypes are the engine's types of the kinds.
var functionTypes = map[scalar.Kind]b.Type{
	scalar.Bool: b.TypeBoolean, scalar.Int32: b.TypeInteger, scalar.Int64: b.TypeBigInt,
	scalar.Float64: b.TypeDouble, scalar.Text: b.TypeVarchar, scalar.Blob: b.TypeBlob,
	scalar.Date: b.TypeDate, scalar.Time: b.TypeTime, scalar.Timestamp: b.TypeTimestamp,
	scalar.TimestampTZ: b.TypeTimestampTZ, scalar.Interval: b.TypeInterval,
}

// functions are all that were registered, by the number that the engine keeps: it holds
// no pointers of Go. The list only grows, by a database's functions once.
var functions struct {
	sync.RWMutex
	list []scalar.Function
}

func functionAt(at uintptr) *scalar.Function {
	functions.RLock()
	defer functions.RUnlock()
	return &functions.list[at]
}

// RegisterFunctions lets the database's SQL call functions.
func (d *DB) RegisterFunctions(list []scalar.Function) error {
	if len(list) == 0 {
		return nil
	}
	conn, err := d.Connect()
	if err != nil {
		return err
	}
	defer conn.Close()
	functions.Lock()
	first := len(functions.list)
	if at := registered(list); at >= 0 {
		first = at
	} else {
		functions.list = append(functions.list, list...)
	}
	functions.Unlock()
	for i, f := range list {
		if err := registerFunction(conn.conn, f, uintptr(first+i)); err != nil {
			return fmt.Errorf("register function %s: %w", f.Name, err)
		}
	}
	return nil
}

// registered finds the very list among those registered before, -1 when it is not there.
func registered(list []scalar.Function) int {
	for at := 0; at+len(list) <= len(functions.list); at++ {
		same := true
		for i := range list {
			have := &functions.list[at+i]
			same = same && have.Name == list[i].Name && samePlace(have.Params, list[i].Params)
		}
		if same {
			return at
		}
	}
	return -1
}

func samePlace(a, b []scalar.Kind) bool {
	return len(a) == len(b) && unsafe.SliceData(a) == unsafe.SliceData(b)
}

func registerFunction(conn b.Connection, f scalar.Function, at uintptr) error {
	if len(f.Params) > paramsMax {
		return fmt.Errorf("%d parameters, %d at most", len(f.Params), paramsMax)
	}
	var types []C.int
	for _, k := range append(append([]scalar.Kind(nil), f.Params...), f.Result) {
		t, ok := functionTypes[k]
		if !ok {
			return fmt.Errorf("unknown kind %d", k)
		}
		types = append(types, C.int(t))
	}
	name := C.CString(f.Name)
	defer C.free(unsafe.Pointer(name))
	nulls := C.int(0)
	if f.Nulls {
		nulls = 1
	}
	if C.sk_register_function(C.duckdb_connection(unsafe.Pointer(conn.Ptr)), name, &types[0], C.int(len(f.Params)), nulls,
		C.uintptr_t(at)) != 0 {
		return errors.New("refused")
	}
	return nil
}

//export skFunctionParams
func skFunctionParams(at C.uintptr_t) C.int { return C.int(len(functionAt(uintptr(at)).Params)) }

// skCallFunction computes the rows of one chunk. Nothing may escape but through the call:
// a panic here would end the process.
//
//export skCallFunction
func skCallFunction(at C.uintptr_t, call *C.struct_sk_call) {
	f := functionAt(uintptr(at))
	if err := callRows(f, call); err != nil {
		message := C.CString(err.Error())
		C.sk_function_failed(call.info, message)
		C.free(unsafe.Pointer(message))
	}
}

func callRows(f *scalar.Function, call *C.struct_sk_call) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("function %s failed: %v", f.Name, p)
		}
	}()
	n := int(call.rows)
	var columns [paramsMax]column
	for i, k := range f.Params {
		columns[i] = column{kind: k, data: unsafe.Pointer(call.data[i]), validity: (*uint64)(call.validity[i])}
	}
	out := results{
		kind: f.Result, n: n, data: unsafe.Pointer(call.result),
		validity: unsafe.Slice((*uint64)(call.result_validity), (n+63)/64),
	}
	var args [paramsMax]scalar.Value
	for row := range n {
		null := false
		for i := range f.Params {
			columns[i].load(row, &args[i])
			null = null || args[i].Null
		}
		v := scalar.Null
		if !null || f.Nulls {
			if v, err = f.Call(args[:len(f.Params)]); err != nil {
				return err
			}
		}
		out.put(row, v)
	}
	out.flush(call)
	return nil
}

// column is an argument's vector.
type column struct {
	kind     scalar.Kind
	data     unsafe.Pointer
	validity *uint64 // nil when no value is null
}

func at[T any](data unsafe.Pointer, row int) *T {
	var zero T
	return (*T)(unsafe.Add(data, row*int(unsafe.Sizeof(zero))))
}

// engineText is the engine's string: its length, then its bytes, or a prefix of four and
// a pointer when they are more than twelve.
type engineText struct {
	length uint32
	inline [4]byte
	bytes  [8]byte
}

type engineInterval struct {
	months, days int32
	micros       int64
}

func (c *column) load(row int, v *scalar.Value) {
	if c.validity != nil && *at[uint64](unsafe.Pointer(c.validity), row>>6)>>(row&63)&1 == 0 {
		*v = scalar.Null
		return
	}
	v.Null = false
	switch c.kind {
	case scalar.Bool:
		v.Int = int64(*at[uint8](c.data, row))
	case scalar.Int32, scalar.Date:
		v.Int = int64(*at[int32](c.data, row))
	case scalar.Float64:
		v.Float = *at[float64](c.data, row)
	case scalar.Interval:
		iv := at[engineInterval](c.data, row)
		v.Months, v.Days, v.Int = iv.months, iv.days, iv.micros
	case scalar.Text, scalar.Blob:
		t := at[engineText](c.data, row)
		const inlineMax = 12
		if t.length <= inlineMax {
			v.Text = unsafe.String(&t.inline[0], int(t.length))
			return
		}
		v.Text = unsafe.String(*(**byte)(unsafe.Pointer(&t.bytes)), int(t.length))
	default:
		v.Int = *at[int64](c.data, row)
	}
}

// results is the result's vector. Texts are gathered and handed over once.
type results struct {
	kind     scalar.Kind
	n        int
	data     unsafe.Pointer
	validity []uint64
	bytes    []byte
	ends     []int64
}

func (r *results) put(row int, v scalar.Value) {
	text := r.kind == scalar.Text || r.kind == scalar.Blob
	if v.Null {
		r.validity[row>>6] &^= 1 << (row & 63)
		if text {
			r.ends = append(r.ends, int64(len(r.bytes)))
		}
		return
	}
	switch r.kind {
	case scalar.Bool:
		*at[uint8](r.data, row) = uint8(v.Int)
	case scalar.Int32, scalar.Date:
		*at[int32](r.data, row) = int32(v.Int)
	case scalar.Float64:
		*at[float64](r.data, row) = v.Float
	case scalar.Interval:
		*at[engineInterval](r.data, row) = engineInterval{v.Months, v.Days, v.Int}
	case scalar.Text, scalar.Blob:
		if r.ends == nil {
			r.ends = make([]int64, 0, r.n)
			r.bytes = make([]byte, 0, min(r.n*(len(v.Text)+8), math.MaxUint16))
		}
		r.bytes = append(r.bytes, v.Text...)
		r.ends = append(r.ends, int64(len(r.bytes)))
	default:
		*at[int64](r.data, row) = v.Int
	}
}

func (r *results) flush(call *C.struct_sk_call) {
	if len(r.ends) == 0 {
		return
	}
	C.sk_put_texts(call.out, (*C.char)(unsafe.Pointer(unsafe.SliceData(r.bytes))),
		(*C.int64_t)(unsafe.Pointer(unsafe.SliceData(r.ends))), (*C.uint64_t)(call.result_validity), C.int64_t(r.n))
}
