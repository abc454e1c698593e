package slt

import (
	"fmt"
	"strings"
)

// expand replaces variables in text: ${NAME} of loops always, $NAME of "let $NAME"
// always, and with substitution on, $NAME, ${NAME}, ${NAME:default} of loops, let,
// the runner's own (__TEST_DIR__, __NOW__, __DATABASE__) and the environment.
func (s *run) expand(text string) (string, error) {
	if !strings.ContainsAny(text, `$\_{`) {
		return text, nil
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		n, value, err := s.variable(text[i:])
		if err != nil {
			return "", err
		}
		if n == 0 {
			b.WriteByte(text[i])
			i++
			continue
		}
		b.WriteString(value)
		i += n
	}
	return b.String(), nil
}

// variable reads a variable at the start of text: how many bytes it takes, and its value.
func (s *run) variable(text string) (n int, value string, err error) {
	switch {
	case s.subst && (strings.HasPrefix(text, `\$`) || strings.HasPrefix(text, `\\`)):
		return 2, text[1:2], nil
	case strings.HasPrefix(text, "${"):
		return s.braced(text)
	case strings.HasPrefix(text, "$$"):
		return 2, "$$", nil
	case text[0] == '$':
		return s.bare(text)
	case s.dialect == DuckDB:
		for _, name := range []string{"__TEST_DIR__", "{TEST_DIR}"} {
			if strings.HasPrefix(text, name) {
				dir, err := s.shared.testDir()
				return len(name), dir, err
			}
		}
	}
	return 0, "", nil
}

func (s *run) braced(text string) (n int, value string, err error) {
	end := closing(text)
	if end < 0 {
		return 0, "", nil
	}
	name, other, hasOther := strings.Cut(text[2:end], ":")
	v, ok, err := s.lookup(name)
	switch {
	case err != nil || ok:
		return end + 1, v, err
	case hasOther && wordLen(name) == len(name):
		other, err = s.expand(other)
		return end + 1, other, err
	case s.subst && wordLen(name) == len(name):
		return 0, "", fmt.Errorf("variable %s is not defined", name)
	}
	return 0, "", nil
}

// closing is where the brace of ${ closes, or -1.
func closing(text string) int {
	open := 0
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '{':
			open++
		case '}':
			if open--; open == 0 {
				return i
			}
		}
	}
	return -1
}

// bare reads $NAME. A dollar quote ($$ or $tag$) and $1 stay as they are.
func (s *run) bare(text string) (n int, value string, err error) {
	end := 1 + wordLen(text[1:])
	name := text[1:end]
	if name == "" || !s.subst && !s.dollar[name] {
		return 0, "", nil
	}
	v, ok, err := s.lookup(name)
	switch {
	case err != nil || ok:
		return end, v, err
	case name[0] >= '0' && name[0] <= '9':
		return end, text[:end], nil
	case end < len(text) && text[end] == '$':
		return end + 1, text[:end+1], nil
	}
	return 0, "", fmt.Errorf("variable %s is not defined", name)
}

// wordLen is how many letters, digits and underscores text starts with.
func wordLen(text string) int {
	for i, c := range []byte(text) {
		if c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return i
		}
	}
	return len(text)
}

func (s *run) lookup(name string) (string, bool, error) {
	if v, ok := s.vars[name]; ok {
		return v, true, nil
	}
	if !s.subst {
		return "", false, nil
	}
	switch name {
	case "__TEST_DIR__":
		dir, err := s.shared.testDir()
		return dir, true, err
	case "__NOW__":
		return s.cfg.now(), true, nil
	case "__DATABASE__":
		name, err := s.cfg.database()
		return name, true, err
	}
	if s.cfg.Env == nil {
		return "", false, nil
	}
	v, ok := s.cfg.Env(name)
	return v, ok, nil
}
