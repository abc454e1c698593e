package charset

import (
	"github.com/skipprd/skipprd/pgwire/charmap"
	"github.com/skipprd/skipprd/pgwire/encname"
)

// Known says that a database can be in an encoding that has to be converted here.
func Known(name string) bool {
	c, err := Of(name)
	return c != nil && err == nil
}

// Of is an encoding by the server's name of it; nil where there is nothing to convert, or no
// table to do it by.
func Of(name string) (*Charset, error) {
	if encname.ClientOnly(name) {
		return nil, nil
	}
	c, err := charmap.Of(name)
	if c == nil || err != nil {
		return nil, err
	}
	return &Charset{c}, nil
}

// Sample is a text with everything that the encoding has and UTF-8 has, too; converted is
// what the server must make of it.
func (c *Charset) Sample() (text, converted []byte) {
	c.Sequences(func(code []byte) {
		if size, as := c.Size(code); as > 0 && size == len(code) {
			text, converted = append(text, code...), c.Append(converted, code)
		}
	})
	return text, converted
}
