package ingest

// Abort implements Sink.
func (b *batcher) Abort() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range b.mu.filling.touched {
		t.discard(b.txn)
		b.mu.filling.schemas = withoutSchemas(b.mu.filling.schemas, t.id, b.txn)
	}
	b.mu.open = false
	signal(b.wake)
	return b.mu.err
}
