package ddl

import (
	"slices"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// connectionSpec parses KIND ['url'] [(NAME value | NAME SECRET name, …)].
func (p *parser) connectionSpec() (ConnectionSpec, error) {
	kind := p.next()
	if kind.kind != tokWord {
		return ConnectionSpec{}, p.unexpected(kind)
	}
	spec := ConnectionSpec{Kind: kind.text, Pos: kind.pos}
	if p.peek().kind == tokString {
		spec.URL = p.next().text
	}
	var err error
	if p.punct("(") {
		spec.Options, err = p.options(strings.ToUpper)
	}
	return spec, err
}

// options parses name [=] value, … ) after the opening parenthesis. fold maps the
// option names.
func (p *parser) options(fold func(string) string) ([]Option, error) {
	var out []Option
	seen := map[string]bool{}
	if p.punct(")") {
		return nil, nil
	}
	for {
		t := p.next()
		if t.kind != tokWord && t.kind != tokQuoted {
			return nil, p.unexpected(t)
		}
		o := Option{Name: fold(t.text), Pos: t.pos}
		if seen[o.Name] {
			return nil, syntaxAt(t.pos, "option \"%s\" is given twice", o.Name)
		}
		seen[o.Name] = true
		if err := p.optionValue(&o); err != nil {
			return nil, err
		}
		out = append(out, o)
		if p.punct(",") {
			continue
		}
		return out, p.expectPunct(")")
	}
}

// optionValue parses the value of o. A word alone (no value) means true.
func (p *parser) optionValue(o *Option) error {
	p.punct("=")
	switch t := p.peek(); {
	case t.kind == tokWord && t.text == "secret":
		p.next()
		name, err := p.name()
		o.Secret = name
		return err
	case t.kind == tokPunct && t.text == "-":
		p.next()
		n := p.next()
		if n.kind != tokNumber {
			return p.unexpected(n)
		}
		o.Value = "-" + n.text
	case t.kind == tokString || t.kind == tokNumber || t.kind == tokQuoted || t.kind == tokWord:
		p.next()
		o.Value = t.text
	case t.kind == tokPunct && (t.text == "," || t.text == ")"):
		o.Value = "true"
	default:
		return p.unexpected(t)
	}
	return nil
}

// pipelineBody parses what follows CREATE PIPELINE name.
func (p *parser) pipelineBody(s *CreatePipeline) error {
	if err := p.expectWord("from"); err != nil {
		return err
	}
	if err := p.pipelineSource(s); err != nil {
		return err
	}
	var err error
	for {
		switch {
		case p.word("into"):
			s.Lake, err = p.name()
		case p.word("schema"):
			if t := p.peek(); t.kind == tokString {
				s.Schema = p.next().text
			} else {
				s.Schema, err = p.name()
			}
		case p.word("for"):
			err = p.selection(&s.Selection)
		case p.word("with"):
			if err = p.expectPunct("("); err == nil {
				s.Options, err = p.options(strings.ToLower)
			}
		default:
			return p.checkPipelineBody(s)
		}
		if err != nil {
			return err
		}
	}
}

// checkPipelineBody fills what may be left out. A generator has one set of tables,
// so its FOR clause may be missing.
func (p *parser) checkPipelineBody(s *CreatePipeline) error {
	sel := &s.Selection
	if sel.AllTables || len(sel.Schemas) > 0 || len(sel.Tables) > 0 {
		return nil
	}
	if s.Inline != nil && s.Inline.Kind == "generator" {
		sel.AllTables = true
		return nil
	}
	return p.unexpected(p.peek()).WithHint("Say which tables: FOR ALL TABLES, FOR TABLES IN SCHEMA s, or FOR TABLE t.")
}

// pipelineSource parses a connection's name, or KIND 'url' (options) inline. A word
// that is a kind and is followed by a string, an option list or nothing that could
// follow a name alone is inline.
func (p *parser) pipelineSource(s *CreatePipeline) error {
	t := p.peek()
	after := p.tokens[min(p.at+1, len(p.tokens)-1)]
	inline := t.kind == tokWord && (after.kind == tokString || after.kind == tokPunct && after.text == "(" || t.text == "generator")
	if !inline {
		name, err := p.name()
		s.Connection = name
		return err
	}
	spec, err := p.connectionSpec()
	s.Inline = &spec
	return err
}

// selection parses one FOR clause, after FOR.
func (p *parser) selection(sel *catalog.TableSelection) error {
	switch {
	case p.word("all", "tables"):
		sel.AllTables = true
		return p.except(sel)
	case p.word("tables", "in", "schema"):
		for {
			name, err := p.name()
			if err != nil {
				return err
			}
			sel.Schemas = append(sel.Schemas, name)
			if !p.punct(",") {
				return p.except(sel)
			}
		}
	case p.word("table"):
		var err error
		sel.Tables, err = p.tableList(sel.Tables, publicSchema)
		return err
	}
	return p.unexpected(p.peek())
}

func (p *parser) except(sel *catalog.TableSelection) error {
	if !p.word("except") {
		return nil
	}
	p.word("table")
	parens := p.punct("(")
	for {
		schema, name, err := p.qualified()
		if err != nil {
			return err
		}
		sel.Except = append(sel.Except, schema+"."+name)
		if p.punct(",") {
			continue
		}
		if parens {
			return p.expectPunct(")")
		}
		return nil
	}
}

// tableList adds t [(col, …)], … to tables that were named before. One that is named without
// a schema gets the one given; none is named twice, for then it is not clear which part of
// it is meant.
func (p *parser) tableList(out []catalog.SelectedTable, without string) ([]catalog.SelectedTable, error) {
	for {
		p.word("table")
		at := p.peek().pos
		schema, name, err := p.qualifiedOr(without)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(out, func(t catalog.SelectedTable) bool { return t.Schema == schema && t.Name == name }) {
			return nil, pgerr.New(codes.DuplicateObject, "table \"%s\" specified more than once", strings.TrimPrefix(schema+"."+name, ".")).
				WithPosition(at)
		}
		t := catalog.SelectedTable{Schema: schema, Name: name}
		if p.punct("(") {
			if err = p.tableColumns(&t); err != nil {
				return nil, err
			}
		}
		if err := p.tableLimits(&t); err != nil {
			return nil, err
		}
		out = append(out, t)
		if !p.punct(",") {
			return out, nil
		}
	}
}

// tableColumns parses the columns of a table, of which some are kept as exact text:
// a, b AS text), or * for all, with those that are: *, b AS text).
func (p *parser) tableColumns(t *catalog.SelectedTable) error {
	all := p.punct("*")
	for more := !all || p.punct(","); more; more = p.punct(",") {
		c, err := p.column(slices.Concat(t.Columns, t.AsText))
		if err != nil {
			return err
		}
		asText := p.word("as")
		if asText {
			if err := p.expectWord("text"); err != nil {
				return err
			}
			t.AsText = append(t.AsText, c)
		}
		if all && !asText {
			return p.unexpected(p.peek()).WithHint("After *, only columns AS text are named.")
		}
		if !all {
			t.Columns = append(t.Columns, c)
		}
	}
	return p.expectPunct(")")
}

// tableLimits parses [EXCEPT (columns)] [WHERE (condition)].
func (p *parser) tableLimits(t *catalog.SelectedTable) (err error) {
	if at := p.peek(); p.word("except") {
		if len(t.Columns) > 0 {
			return syntaxAt(at.pos, "a table has either a list of columns or columns that are excepted")
		}
		if err := p.expectPunct("("); err != nil {
			return err
		}
		if t.Except, err = p.columnList(); err != nil {
			return err
		}
	}
	if p.word("where") {
		t.Where, err = p.condition()
	}
	return err
}

// condition takes what stands in parentheses as it is written: it is the source's SQL.
func (p *parser) condition() (string, error) {
	open := p.peek()
	if !p.punct("(") {
		return "", p.unexpected(open).WithHint("The condition stands in parentheses: WHERE (id > 0).")
	}
	for depth := 1; ; {
		t := p.next()
		switch {
		case t.kind == tokEOF:
			return "", syntaxAt(open.pos, "the condition has no closing parenthesis")
		case t.kind == tokPunct && t.text == "(":
			depth++
		case t.kind == tokPunct && t.text == ")":
			depth--
		}
		if depth > 0 {
			continue
		}
		text := strings.TrimSpace(p.src[open.off+1 : t.off])
		if text == "" {
			return "", p.unexpected(t)
		}
		return text, nil
	}
}

// column parses the name of a column that is not among those named before.
func (p *parser) column(before []string) (string, error) {
	at := p.peek().pos
	name, err := p.name()
	if err == nil && slices.Contains(before, name) {
		err = pgerr.New(codes.DuplicateColumn, "column \"%s\" specified more than once", name).WithPosition(at)
	}
	return name, err
}

func (p *parser) columnList() ([]string, error) {
	var out []string
	for {
		c, err := p.column(out)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
		if !p.punct(",") {
			return out, p.expectPunct(")")
		}
	}
}

// alter parses ALTER SECRET | CONNECTION | PIPELINE.
func (p *parser) alter() (Statement, error) {
	object := p.next()
	name, err := p.name()
	if err != nil {
		return nil, err
	}
	if isObject(object.text) && p.word("owner") {
		return p.owner(strings.ToUpper(object.text), name)
	}
	switch object.text {
	case "secret":
		if err := p.expectWord("as"); err != nil {
			return nil, err
		}
		v, err := p.str()
		return &CreateSecret{Name: name, Value: v, Alter: true}, err
	case "connection":
		p.word("set")
		if err := p.expectPunct("("); err != nil {
			return nil, err
		}
		opts, err := p.options(strings.ToUpper)
		return &AlterConnection{Name: name, Options: opts}, err
	case "pipeline":
		s := &AlterPipeline{Name: name}
		return s, p.alterPipeline(s)
	}
	return nil, p.unexpected(object)
}

// tableActions are the actions on tables and their first word.
var tableActions = map[string]Action{
	"add": AddTable, "drop": DropTable, "resync": ResyncTable, "resume": ResumeTable,
}

func (p *parser) alterPipeline(s *AlterPipeline) error {
	t := p.next()
	if a, ok := tableActions[t.text]; ok && p.word("table") {
		s.Action = a
		without := "" // whichever the pipeline has
		if a == AddTable {
			without = publicSchema
		}
		var err error
		s.Tables, err = p.tableList(nil, without)
		return err
	}
	switch t.text {
	case "enable", "disable", "pause", "resume", "compact", "refresh":
		s.Action = Action(strings.ToUpper(t.text))
		return nil
	case "reset":
		s.Action = Reset
		if !p.punct("(") {
			return nil
		}
		s.Action = ResetOptions
		return p.optionNames(s)
	case "set":
		s.Action = SetOptions
		if err := p.expectPunct("("); err != nil {
			return err
		}
		var err error
		s.Options, err = p.options(strings.ToLower)
		return err
	case "rename":
		s.Action = Rename
		if err := p.expectWord("to"); err != nil {
			return err
		}
		var err error
		s.NewName, err = p.name()
		return err
	case "skip":
		return pgerr.New(codes.FeatureNotSupported, "ALTER PIPELINE … %s is not supported by this version", strings.ToUpper(t.text)).
			WithPosition(t.pos)
	}
	return p.unexpected(t).WithHint("The actions are ENABLE, DISABLE, PAUSE, RESUME, RESET, COMPACT, REFRESH, SET (…), RESET (…), RENAME TO, OWNER TO, " +
		"and ADD, DROP, RESYNC, RESUME TABLE.")
}

// optionNames parses name, … ) of RESET.
func (p *parser) optionNames(s *AlterPipeline) error {
	for {
		at := p.peek().pos
		name, err := p.name()
		if err != nil {
			return err
		}
		s.Options = append(s.Options, Option{Name: name, Pos: at})
		if !p.punct(",") {
			return p.expectPunct(")")
		}
	}
}

// sync parses SYNC PIPELINE name [UNTIL CAUGHT UP | FOR 'interval'].
func (p *parser) sync() (Statement, error) {
	if err := p.expectWord("pipeline"); err != nil {
		return nil, err
	}
	name, err := p.name()
	if err != nil {
		return nil, err
	}
	s := &Sync{Name: name}
	switch {
	case p.word("until"):
		return s, p.expectWord("caught", "up")
	case p.word("for"):
		t := p.peek()
		text, err := p.str()
		if err != nil {
			return nil, err
		}
		if s.For, err = ParseDuration(text); err != nil || s.For <= 0 {
			return nil, pgerr.New(codes.InvalidParameterValue, "invalid interval: \"%s\"", text).WithPosition(t.pos).
				WithHint("Write a positive duration, for example '10 min'.")
		}
	}
	return s, nil
}
