package slt

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// edit replaces lines of a file.
type edit struct {
	at    span
	lines []string
}

// editKey is where an edit applies.
type editKey struct {
	file string
	from int
}

// wished is what a record wanted its file to say when it ran last.
type wished struct {
	text string
	at   editKey // zero: nothing
}

// edit notes that a record holds with fix, or as it stands when fix is nil. A record of
// a loop must want the same in each turn: where it does not, nothing is written and cause
// is the failure.
func (sh *shared) edit(rec *Record, fix *edit, cause error) error {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	wish := "as it stands"
	if fix != nil {
		wish = fmt.Sprint(fix.at, strings.Join(fix.lines, "\n"))
	}
	if old, ok := sh.mu.seen[rec]; ok && old.text != wish {
		delete(sh.mu.edits, old.at)
		sh.mu.seen[rec] = wished{text: "nothing fits"}
		if cause == nil {
			cause = errors.New("another turn gave another result")
		}
		return fmt.Errorf("not rewritten, the turns of the loop differ: %w", cause)
	}
	w := wished{text: wish}
	if fix != nil {
		w.at = editKey{rec.File, fix.at.from}
		sh.mu.edits[w.at] = fix
	}
	sh.mu.seen[rec] = w
	return nil
}

// rewrite applies the edits to the files and counts them.
func (sh *shared) rewrite() (int, error) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	byFile := map[string][]*edit{}
	for key, e := range sh.mu.edits {
		byFile[key.file] = append(byFile[key.file], e)
	}
	n := 0
	for _, file := range slices.Sorted(maps.Keys(byFile)) {
		if err := rewriteFile(file, byFile[file]); err != nil {
			return n, fmt.Errorf("rewrite %s: %w", file, err)
		}
		n += len(byFile[file])
	}
	return n, nil
}

// rewriteFile replaces lines and leaves every other byte as it is. The file is replaced
// whole, so that a death in between leaves the old one.
func rewriteFile(path string, edits []*edit) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	now, err := applyEdits(old, edits)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(path), ".slt-*")
	if err != nil {
		return err
	}
	_, err = temp.Write(now)
	if err = errors.Join(err, temp.Chmod(info.Mode().Perm()), temp.Close()); err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp.Name()))
	}
	return nil
}

func applyEdits(text []byte, edits []*edit) ([]byte, error) {
	lines := bytes.SplitAfter(text, []byte("\n"))
	end := "\n"
	if bytes.HasSuffix(lines[0], []byte("\r\n")) {
		end = "\r\n"
	}
	slices.SortFunc(edits, func(a, b *edit) int { return a.at.from - b.at.from })
	var out bytes.Buffer
	at := 0
	for _, e := range edits {
		if e.at.from < at || e.at.to > len(lines) {
			return nil, errors.New("the file changed meanwhile")
		}
		out.Write(bytes.Join(lines[at:e.at.from], nil))
		if b := out.Bytes(); len(b) > 0 && b[len(b)-1] != '\n' {
			out.WriteString(end) // ---- was the file's last line, without an end
		}
		for _, l := range e.lines {
			out.WriteString(l + end)
		}
		if at = e.at.to; at > e.at.from && len(e.lines) > 0 && !bytes.HasSuffix(lines[at-1], []byte("\n")) {
			out.Truncate(out.Len() - len(end))
		}
	}
	out.Write(bytes.Join(lines[at:], nil))
	return out.Bytes(), nil
}
