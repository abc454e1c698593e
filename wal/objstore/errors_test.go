package objstore_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/skipprd/skipprd/wal/objstore"
)

func TestIsRetryable(t *testing.T) {
	for _, c := range []struct {
		err   error
		retry bool
	}{
		{objstore.ErrConflict, true},
		{objstore.ErrUnavailable, true},
		{objstore.ErrUnknown, true},
		{objstore.ErrNotFound, false},
		{objstore.ErrPrecondition, false},
		{objstore.ErrDamaged, false},
		{&objstore.DeleteError{Failed: []objstore.KeyError{{Key: "a", Err: objstore.ErrUnavailable}}}, true},
		{&objstore.DeleteError{Failed: []objstore.KeyError{{Key: "a", Err: errors.New("denied")}}}, false},
	} {
		if got := objstore.IsRetryable(fmt.Errorf("put k: %w", c.err)); got != c.retry {
			t.Errorf("%v is retryable: %t", c.err, got)
		}
	}
}
