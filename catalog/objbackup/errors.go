package objbackup

import "errors"

// ErrSuperseded says that another machine has taken the backup over: this one's catalog
// is not the one that counts any more.
var ErrSuperseded = errors.New("another machine keeps this catalog's backup")
