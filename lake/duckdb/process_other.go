//go:build !linux

package duckdb

import "os/exec"

// tieToParent does nothing: the end of its standard input ends the child.
func tieToParent(*exec.Cmd) {}
