package clienttext

import (
	"fmt"
	"io"
)

// errFrame means that messages were not framed as the protocol does.
var errFrame = fmt.Errorf("rows: %w", io.ErrUnexpectedEOF)
