package pgfunc

import (
	"slices"
	"sync"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/lake/scalar"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/pgfunc/arrays"
	"github.com/skipprd/skipprd/planner/pgfunc/bitstring"
	"github.com/skipprd/skipprd/planner/pgfunc/hash"
	"github.com/skipprd/skipprd/planner/pgfunc/jsonpath"
	"github.com/skipprd/skipprd/planner/pgfunc/network"
	"github.com/skipprd/skipprd/planner/pgfunc/span"
)

// Functions are all functions of the package. The list is always the same one.
var Functions = sync.OnceValue(func() []scalar.Function {
	list := slices.Concat(numericFunctions(), jsonFunctions(), jsonRowFunctions(), jsonTextFunctions(), identFunctions(), intervalFunctions(), intervalModFunctions(), momentFunctions(), dateFunctions(), zoneFunctions(), bitFunctions(), regexFunctions(), bytesFunctions(), convertFunctions(), hashFunctions(), textFunctions(), templateFunctions(),
		sumListFunctions(), normalFunctions(), network.Functions(), arrays.Functions(), bitstring.Functions(), span.Functions(), jsonpath.Functions(), hash.Functions())
	for i, f := range list {
		list[i].Call = coded(f.Call)
	}
	return list
})

// engineError is an error in the form that survives the way through the engine.
type engineError struct{ err *pgerr.Error }

func (e engineError) Error() string {
	text := string(e.err.Code) + ": " + e.err.Message
	if e.err.Detail != "" {
		text += "\nDETAIL: " + e.err.Detail
	}
	if e.err.Hint != "" {
		text += "\nHINT: " + e.err.Hint
	}
	return text
}

func (e engineError) Unwrap() error { return e.err }

func coded(call func([]scalar.Value) (scalar.Value, error)) func([]scalar.Value) (scalar.Value, error) {
	return func(args []scalar.Value) (scalar.Value, error) {
		v, err := call(args)
		if err == nil {
			return v, nil
		}
		if e, ok := pgerr.As(err); ok {
			err = engineError{e}
		}
		return v, err
	}
}

func kinds(k ...scalar.Kind) []scalar.Kind { return k }

func invalid(format string, args ...any) error {
	return pgerr.New(codes.InvalidParameterValue, format, args...)
}

func unsupported(format string, args ...any) error {
	return pgerr.New(codes.FeatureNotSupported, format, args...)
}
