package scroll

import "context"

// Kept are rows that stay: they are pulled once, in order, and can be passed again.
type Kept struct {
	// Store has the rows that were pulled.
	Store *Store
	// Pull appends at most n further rows to the store, All for the rest, and fewer only at
	// the end.
	Pull func(ctx context.Context, n int64) error
	// Send sends rows to the client.
	Send func(messages []byte, n int) error
	// at is the current row, from 1; 0 before the first, one more than there are at the end.
	at    int64
	ended bool
}

// Finish pulls all rows that are left.
func (k *Kept) Finish(ctx context.Context) error {
	if k.ended {
		return nil
	}
	k.ended = true
	return k.Pull(ctx, All)
}

// Next implements Rows.
func (k *Kept) Next(ctx context.Context, n int64, send bool) (int64, error) {
	have := k.Store.Len() - k.at
	if have < 0 { // at the end
		return 0, nil
	}
	if have < n && !k.ended {
		want := n
		if n != All {
			want = n - have
		}
		before := k.Store.Len()
		if err := k.Pull(ctx, want); err != nil {
			return 0, err
		}
		have = k.Store.Len() - k.at
		k.ended = k.Store.Len()-before < want
	}
	got := min(have, n)
	if send && got > 0 {
		if err := k.Store.Forward(k.at, got, k.Send); err != nil {
			return 0, err
		}
	}
	k.at += got
	if got < n {
		k.at = k.Store.Len() + 1
	}
	return got, nil
}

// Prior implements Rows.
func (k *Kept) Prior(_ context.Context, n int64, send bool) (int64, error) {
	got := min(n, max(k.at-1, 0))
	if send && got > 0 {
		if err := k.Store.Backward(k.at-2, got, k.Send); err != nil {
			return 0, err
		}
	}
	k.at -= got
	if got < n {
		k.at = 0
	}
	return got, nil
}
