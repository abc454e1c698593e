package pgsql

import (
	"strings"
	"testing"
)

// An array literal is read or refused.
func FuzzArray(f *testing.F) {
	f.Add(`{1,2,NULL}`)
	f.Add(`{"a\"b", c d ,""}`)
	f.Add(`{}`)
	f.Add(`{{1},{2}}`)
	f.Fuzz(func(t *testing.T, text string) {
		items, err := parseArray(text)
		if err == nil && len(items) > strings.Count(text, ",")+1 {
			t.Errorf("%q has %d items", text, len(items))
		}
	})
}
