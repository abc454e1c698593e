package duckdb

import (
	"slices"
	"testing"
)

func TestWorkerEnvironHasNoSecrets(t *testing.T) {
	got := workerEnviron([]string{"PATH=/bin", "POSTGRES_PASSWORD=x", "SHOP_PW=y", "GOMEMLIMIT=1GiB", "LC_ALL=C", "SKIPPRD_SECRET_KEY=z"})
	if want := []string{"PATH=/bin", "GOMEMLIMIT=1GiB", "LC_ALL=C"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := workerEnviron(nil); got == nil {
		t.Error("nil, which stands for the server's whole environment")
	}
}
