package ruleutils

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/skipprd/skipprd/pgwire/encode"
	"github.com/skipprd/skipprd/planner/pgfunc"
	"github.com/skipprd/skipprd/planner/pgfunc/span"
)

var (
	plainNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?$`)
	plainUUID   = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	plainTime   = regexp.MustCompile(`^([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{0,5}[1-9])?)?$`)
	// plainItems are the elements of arrays whose text is the one that PostgreSQL writes.
	plainItems = regexp.MustCompile(`^[A-Za-z0-9_.+:-]+$`)
)

// literal is a literal as a constant of a type: in the text that the type writes.
func (r *resolver) literal(k *constant, to typed) (node, error) {
	out := &constant{typed: typed{to.oid, -1}, null: k.null}
	if k.null {
		return out, nil
	}
	if to.oid == typInterval && to.typmod >= 0 {
		return nil, unknown("an interval of some fields")
	}
	var err error
	if elem := r.facts.elemOf(to.oid); elem != 0 {
		out.text, err = r.arrayText(k.text, elem)
	} else {
		out.text, err = r.valueText(k.text, to.oid)
	}
	return out, err
}

func (r *resolver) valueText(text string, oid uint32) (string, error) {
	trimmed := strings.TrimSpace(text)
	switch oid {
	case typText, typVarchar, typBpchar, typName, typJSON, typUnknown:
		return text, nil
	case typBool:
		for want, words := range map[string]string{"true": " true tru tr t yes ye y on 1 ", "false": " false fals fal fa f no n off of 0 "} {
			if trimmed != "" && strings.Contains(words, " "+strings.ToLower(trimmed)+" ") {
				return want, nil
			}
		}
	case typInt2, typInt4, typInt8, typOID:
		n, err := strconv.ParseInt(trimmed, 10, 64)
		if err == nil {
			return strconv.FormatInt(n, 10), nil
		}
	case typNumeric:
		if plainNumber.MatchString(trimmed) && !strings.HasPrefix(trimmed, "-0") {
			return trimmed, nil
		}
	case typFloat4, typFloat8, typDate, typTimestamp, typInterval, 17:
		return pgfunc.Settled(encode.Input{}, oid, text, "UTC")
	case typTime:
		if m := plainTime.FindStringSubmatch(trimmed); m != nil {
			if m[2] == "" {
				trimmed += ":00"
			}
			return trimmed, nil
		}
	case typTimestamptz:
		return r.momentText(text)
	case typUUID:
		if plainUUID.MatchString(trimmed) {
			return trimmed, nil
		}
	case typJSONB:
		return pgfunc.JSONB(text)
	case 650, 774, 829, 869, typBit, 1562, 3220, 600, 601, 602, 603, 604, 628, 718: // networks, bit strings, geometry
		if text, err := (encode.Input{}).Decode(oid, 0, []byte(text)); err == nil {
			return text, nil
		}
	default:
		if kind, _, ok := span.KindOf(oid); ok && (kind != span.TSTZ || strings.EqualFold(r.d.Zone, "UTC")) {
			return span.Reader{Local: func(int64) int64 { return 0 }}.Canonical(oid, text)
		}
		if r.facts.typeOf(oid).kind == 'e' {
			return text, nil
		}
	}
	return "", unknown("a literal of type %d", oid)
}

// momentText is a timestamptz in the session's zone.
func (r *resolver) momentText(text string) (string, error) {
	utc, err := pgfunc.Settled(encode.Input{}, typTimestamptz, text, "UTC")
	if err != nil || strings.EqualFold(r.d.Zone, "UTC") || strings.Contains(utc, "infinity") {
		return utc, err
	}
	zone, err := time.LoadLocation(r.d.Zone)
	if err != nil {
		return "", unknown("zone %s", r.d.Zone)
	}
	t, err := time.Parse("2006-01-02 15:04:05.999999-07", utc)
	if err != nil {
		return "", unknown("moment %s", utc)
	}
	shown := t.In(zone).Format("2006-01-02 15:04:05.999999-07:00")
	return strings.TrimSuffix(shown, ":00"), nil
}

func (r *resolver) arrayText(text string, elem uint32) (string, error) {
	inner, ok := strings.CutPrefix(text, "{")
	inner, ended := strings.CutSuffix(inner, "}")
	if !ok || !ended {
		return "", unknown("array %s", text)
	}
	if inner == "" {
		return text, nil
	}
	for _, item := range strings.Split(inner, ",") {
		if item == "NULL" {
			continue
		}
		same, err := r.valueText(item, elem)
		if err != nil || elem != typBool && same != item || elem == typBool && item != "t" && item != "f" || !plainItems.MatchString(item) || strings.EqualFold(item, "null") {
			return "", unknown("array %s", text)
		}
	}
	return text, nil
}
