package scroll

import "context"

// Kept are rows that stay: they are pulled once, in order, and can be passed again.
type Kept struct {
	// Store has the rows that were pulled.
	Store *Store
	// Pull appends at most n further rows with Append, All for the rest, and fewer only at the
	// end.
	Pull func(ctx context.Context, n int64) error
	// Send sends rows to the client.
	Send func(messages []byte, n int) error
	// Recent says that only the last rows need be kept, as many as memory has room for.
	Recent bool
	// at is the current row, from 1; 0 before the first, one more than there are at the end.
	at    int64
	ended bool
	// passing says that rows that are pulled are passed at once, sends that they are sent.
	passing, sends bool
}

// Append keeps n rows that are pulled. messages are not kept.
func (k *Kept) Append(messages []byte, n int) error {
	if err := k.Store.Append(messages, n); err != nil {
		return err
	}
	if k.Recent && k.passing {
		k.Store.Forget(k.Store.Len())
	}
	if !k.sends {
		return nil
	}
	return k.Send(messages, n)
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
	got := min(have, n)
	if send && got > 0 {
		if err := k.Store.Forward(k.at, got, k.Send); err != nil {
			return 0, err
		}
	}
	k.at += got
	if got < n && !k.ended {
		pulled, err := k.pull(ctx, n, got, send)
		if err != nil {
			return 0, err
		}
		got += pulled
	}
	if got < n {
		k.at = k.Store.Len() + 1
	}
	return got, nil
}

// pull passes rows that are not kept yet: of n wanted there were got.
func (k *Kept) pull(ctx context.Context, n, got int64, send bool) (int64, error) {
	want := n
	if n != All {
		want = n - got
	}
	before := k.Store.Len()
	k.passing, k.sends = true, send
	err := k.Pull(ctx, want)
	k.passing, k.sends = false, false
	pulled := k.Store.Len() - before
	k.at += pulled
	k.ended = pulled < want
	return pulled, err
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

// Current is the current row, nil when it is on none, or on one that is not kept any more.
func (k *Kept) Current() (row []byte) {
	if k.at < 1 || k.at > k.Store.Len() || k.at-1 < k.Store.First() {
		return nil
	}
	_ = k.Store.Forward(k.at-1, 1, func(message []byte, _ int) error {
		row = message
		return nil
	})
	return row
}
