package encode

import (
	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/lake/vector"
	"github.com/skipprd/skipprd/pgwire/encode/compound"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// chooseCell returns the function that sends a value of engine type t as oid; nil
// for the type of an untyped NULL.
func chooseCell(t vector.Type, oid uint32, binaryForm bool) (appendFunc, error) {
	if t.Kind == vector.Null {
		return nil, nil
	}
	text, err := chooseText(t, oid)
	if err != nil || !binaryForm {
		return text, err
	}
	if f := chooseBinary(t, oid); f != nil {
		return f, nil
	}
	if isTextual(oid) {
		return text, nil
	}
	return binaryViaText(t, oid)
}

// binaryViaText is the slow way to a binary form: the value's text, in the default
// style, parsed as the target type.
func binaryViaText(t vector.Type, oid uint32) (appendFunc, error) {
	parse := binaryFromText(oid)
	text, err := chooseText(t, oid)
	if err != nil {
		return nil, err
	}
	if parse == nil {
		return nil, errNoBinary(oid)
	}
	var plain state
	if err := plain.init(DefaultFormat()); err != nil {
		return nil, err
	}
	return func(s *state, dst []byte, v *vector.Vector, i int) []byte {
		var src []byte
		if t.Kind == vector.String {
			src = v.Bytes(i)
		} else {
			plain.scratch = text(&plain, plain.scratch[:0], v, i)
			src = plain.scratch
			if plain.err != nil {
				s.fail(plain.err)
				return dst
			}
		}
		out, err := parse(dst, src)
		if err != nil {
			s.fail(err)
			return dst
		}
		return out
	}, nil
}

// recordBinary is record_send of a record that is text.
func recordBinary(fields string) (appendFunc, error) {
	parse := compound.Record(fields, fieldFromText)
	if parse == nil {
		return nil, errNoBinary(oidRecord)
	}
	return func(s *state, dst []byte, v *vector.Vector, i int) []byte {
		out, err := parse(dst, v.Bytes(i))
		if err != nil {
			s.fail(err)
			return dst
		}
		return out
	}, nil
}

// fieldFromText is binaryFromText for the fields of records.
func fieldFromText(oid uint32) parseFunc {
	if oid == oidUnknown {
		return func(dst, src []byte) ([]byte, error) { return append(dst, src...), nil }
	}
	return binaryFromText(oid)
}

func errNoBinary(oid uint32) error {
	return pgerr.New(codes.FeatureNotSupported, "no binary output function available for type %s", typeName(oid)).
		WithHint("Ask for text format, or cast the column to text.")
}

func errCannotSend(t vector.Type, oid uint32) error {
	return pgerr.New(codes.FeatureNotSupported, "cannot send a value of engine kind %d as type %s", t.Kind, typeName(oid))
}

// chooseText returns the text output function for t announced as oid.
func chooseText(t vector.Type, oid uint32) (appendFunc, error) {
	switch t.Kind {
	case vector.Bool:
		if oid == oidBool || oid == 0 {
			return boolText, nil
		}
		return boolWord, nil
	case vector.Int8, vector.Int16, vector.Int32, vector.Int64, vector.UInt8, vector.UInt16,
		vector.UInt32, vector.UInt64, vector.HugeInt, vector.UHugeInt:
		return integerText(t.Kind, oid), nil
	case vector.Float32, vector.Float64:
		return floatText(t.Kind, oid), nil
	case vector.Decimal:
		return decimalText(t, oid), nil
	case vector.Date, vector.Time, vector.TimeTZ, vector.Timestamp, vector.TimestampTZ,
		vector.TimestampS, vector.TimestampMS, vector.TimestampNS:
		return dateTimeText(t.Kind, oid), nil
	case vector.Interval:
		return intervalText, nil
	case vector.String:
		if oid == oidInterval {
			return intervalOfText, nil
		}
		return stringText, nil
	case vector.Blob:
		return blobText(oid), nil
	case vector.Bit:
		return bitText, nil
	case vector.UUID:
		return uuidText, nil
	case vector.Enum:
		return enumText(t), nil
	case vector.List:
		return listText(t, oid)
	case vector.Struct:
		return structText(t)
	case vector.Map:
		return mapText(t)
	}
	return nil, errCannotSend(t, oid)
}

// chooseBinary returns the direct binary function for t announced as oid, or nil
// when the way leads over text.
func chooseBinary(t vector.Type, oid uint32) appendFunc {
	switch t.Kind {
	case vector.Bool:
		if oid == oidBool {
			return boolBinary
		}
	case vector.Int8, vector.Int16, vector.Int32, vector.Int64, vector.UInt8, vector.UInt16,
		vector.UInt32, vector.UInt64, vector.HugeInt, vector.UHugeInt:
		return integerBinary(t.Kind, oid)
	case vector.Float32, vector.Float64:
		return floatBinary(t.Kind, oid)
	case vector.Decimal:
		if oid == oidNumeric {
			return decimalBinary(t)
		}
	case vector.Date, vector.Time, vector.TimeTZ, vector.Timestamp, vector.TimestampTZ,
		vector.TimestampS, vector.TimestampMS, vector.TimestampNS:
		return dateTimeBinary(t.Kind, oid)
	case vector.Interval:
		if oid == oidInterval {
			return intervalBinary
		}
	case vector.String:
		if oid == oidJSONB {
			return jsonbBinary
		}
		if isUserText(oid) { // an enum: its label is its binary form
			return stringText
		}
	case vector.Blob:
		if oid == oidBytea {
			return stringText
		}
	case vector.Bit:
		if oid == oidBit || oid == oidVarbit {
			return bitBinary
		}
	case vector.UUID:
		if oid == oidUUID {
			return uuidBinary
		}
	case vector.Enum:
		if oid >= firstUserOID {
			return enumText(t)
		}
	case vector.List:
		return listBinary(t, oid)
	case vector.Struct:
		return structBinary(t, oid)
	}
	return nil
}

// firstUserOID is the first OID that PostgreSQL gives to user-defined types.
const firstUserOID = 16384

// What numbers of types that users have made say of them; see catalog/usertype.
const (
	userBase   = 1 << 30
	userArray  = 1 << 29
	userOpaque = 1 << 28
)

// isUserText reports whether oid is of a type that users have made, whose binary form is its text.
func isUserText(oid uint32) bool {
	return oid >= firstUserOID && (oid < userBase || oid&(userArray|userOpaque) == 0)
}

// userElement is the type of the elements of arrays of such a type, 0 for any other.
func userElement(oid uint32) uint32 {
	if oid >= userBase && oid&userArray != 0 && oid&userOpaque == 0 {
		return oid &^ userArray
	}
	return 0
}
