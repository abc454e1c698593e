// Package pgwire speaks PostgreSQL's frontend/backend protocol 3.0 to 3.2: listening,
// TLS, start-up, authentication, the simple and the extended protocol, COPY, cancel
// and shutdown. It knows nothing about SQL: an Engine stands behind it.
//
// It is not for encoding values (pgwire/encode) and not for errors' texts (pgerr).
//
// Reading order: engine.go is the contract with what stands behind; Server accepts
// and keeps the register of sessions; startup.go and auth.go bring a connection to
// its first ReadyForQuery; session.go is the loop over messages, simple.go and
// extended.go its two protocols; conn.go frames and buffers.
//
// A session is owned by its connection's goroutine. Other goroutines reach it only
// through its cancel function and its activity record.
//
// Memory of a session is bounded: an output buffer of 64 KiB, written out when full,
// before every wait for the client and after every error; a read buffer of 8 KiB;
// and the current message, at most Config.MessageBytesMax, which is read piece by
// piece, so that a length alone allocates nothing. COPY data streams.
package pgwire
