package pgsql

import (
	"fmt"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"
	"github.com/skipprd/skipprd/pgwire/encode"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// Resolver finds relations. Safe for concurrent use.
type Resolver interface {
	// Relation finds a table or system relation by its exact names.
	Relation(schema, name string) (*Relation, bool)
	// HasSchema reports whether a schema exists.
	HasSchema(name string) bool
}

// IndexResolver is a Resolver that knows indexes too.
type IndexResolver interface {
	// Index is the oid of an index by its exact names.
	Index(schema, name string) (oid uint32, ok bool)
}

// Relation is a relation that statements may read. Immutable.
type Relation struct {
	Schema, Name string
	OID          uint32
	// IndexOID is the oid of the key's index, whose name KeyName is.
	IndexOID uint32
	KeyName  string
	// Pipeline is the one that has the table, 0 for none.
	Pipeline uint32
	Columns  []RelationColumn
	// Key are the indexes of the key columns, in key order.
	Key []int
	// WholeRow says that rows are told apart by all columns.
	WholeRow bool
	// System says that the server makes the rows itself.
	System bool
	// Own says that statements here change the table, Temp that it is the session's alone.
	Own, Temp bool
	// Checks are the conditions that new rows meet.
	Checks []Check
	// View is the query of a view, "" for all else. SecurityInvoker says that what it reads is read
	// with the rights of who reads it, not its owner's.
	View            string
	SecurityInvoker bool
	// Check is the check option of a view: "" for none, CheckLocal or CheckCascaded.
	Check string
	// Uniques are unique constraints and indexes besides the key.
	Uniques []Unique
	// Sequence says that it is a sequence.
	Sequence bool
	// Materialized says that it is a materialized view, Unpopulated that it is one which cannot
	// be read.
	Materialized, Unpopulated bool
	// Foreign are its foreign keys, Referenced those of any table, its own too, that refer to it.
	Foreign, Referenced []*Foreign
	// Unchecked says that neither are looked at when its rows change.
	Unchecked bool
}

// The check options of views.
const (
	CheckLocal    = "local"
	CheckCascaded = "cascaded"
)

// Foreign is a foreign key: rows of Child that have values in Columns have one of Parent with
// equal values in Refs, which are the places of columns. Immutable.
type Foreign struct {
	// ID is its object id.
	ID            uint32
	Name          string
	Child, Parent *Relation
	Columns, Refs []int
	// OnDelete and OnUpdate are 'a', 'r', 'c', 'n' and 'd', as in pg_constraint. Set are the columns
	// that ON DELETE SET NULL and SET DEFAULT set.
	OnDelete, OnUpdate byte
	Set                []int
	// Full is MATCH FULL. Deferrable and Deferred are DEFERRABLE and INITIALLY DEFERRED.
	Full, Deferrable, Deferred bool
}

// Check is a condition that new rows of a table meet: that is not false.
type Check struct {
	Name, SQL string
}

// RelationColumn is a column of a Relation.
type RelationColumn struct {
	Name string
	Type Type
	// Engine is the engine's type of the stored values.
	Engine  string
	AttNum  int16
	FieldID int32
	NotNull bool
	// Collation is the column's, 0 for the default.
	Collation uint32
	// Default is the expression, as SQL, that a new row has where it is given no value;
	// "": null.
	Default string
	// Serial is the sequence that goes with the column, named with its schema; "" for none.
	// Identity is "a" for one that is GENERATED ALWAYS AS IDENTITY, "d" for BY DEFAULT.
	Serial, Identity string
	// Generated is the expression, as SQL, by which the column is generated, "" for any other; From are
	// the columns that it names.
	Generated string
	From      []int
}

// Function is a function on top of the built-in list; see planner.SystemFunction
// for what Engine may hold.
type Function struct {
	Schema, Name string
	Args         []uint32
	Result       uint32
	Set          bool
	// Fields are those of the rows that the function returns; Result is record then.
	Fields []Field
	Engine string
}

// Env is what the meaning of a statement depends on.
type Env struct {
	Resolver Resolver
	// SearchPath is resolved: pg_catalog stands where it is searched.
	SearchPath []string
	// TempSchema is the session's schema of temporary objects, "" if there is none.
	TempSchema                  string
	User, SessionUser, Database string
	Version                     string
	PID                         uint32
	// Server is the address that the client has connected to, "host:port".
	Server string
	// Refreshes is the oid of the materialized view that the statement fills, 0 for any other.
	Refreshes uint32
	// Literals is how literals are read, nil for as the settings say: a statement that was
	// prepared keeps what they meant then.
	Literals *encode.Input
	// Binary are the output columns that are sent in binary, by place, as far as they are known: of
	// aliases of object ids that is the number, and of records the types of their fields count.
	Binary []int16
	// Setting returns the value that SHOW would.
	Setting func(name string) (string, bool)
	// Examines is the error of who may not look at a setting, nil for nobody.
	Examines  func(name string) error
	Functions map[string][]Function // by name
}

// Analysis is an analysed query, ready to be planned. Immutable.
type Analysis struct {
	// SQL in the engine's dialect. NowMark in it stands for the transaction's time.
	SQL string
	// Uses are the relations that stand in SQL.
	Uses []*Use
	// Views are the views that it reads.
	Views []*ViewUse
	// Columns are the output columns.
	Columns []OutputColumn
	// Params are the parameter types.
	Params []uint32
	// Effects are the calls that act on the server, in order; they happen when the
	// statement runs.
	Effects []Effect
	// Locks are the tables whose rows the statement locks, before it takes its moment.
	Locks []RowLock
	// Stage is what is done for each row of a query of calls, nil for any other.
	Stage *Stage
}

// NowMark stands in Analysis.SQL for the time of the transaction as a quoted
// literal.
const NowMark = "\x01now\x01"

// Use is one use of a relation in a statement.
type Use struct {
	Relation *Relation
	// Name is the placeholder in the SQL.
	Name string
	// Columns are the columns that the statement needs: index into
	// Relation.Columns and the name under which SQL knows it.
	Columns []UsedColumn
	// Target says that the statement writes the relation: then it reads, by what it says,
	// the columns Reads alone.
	Target bool
	Reads  []int
	// Via is the oid of the view whose query names the relation, 0 for the statement itself.
	Via uint32
	// Inner says that the statement does not name the relation: a function of it reads it.
	Inner bool
	// From is the statement of WITH whose rows it stands for, nil for what the relation has.
	From *Write
	// KeyPredicate restricts key columns, in the engine's dialect over the used names;
	// it holds for every row that the statement can need.
	KeyPredicate string
	// Bounds are inclusive integer bounds of a single-column key, when Bounded.
	Bounded    bool
	Min, Max   int64
	names      map[int]int
	seen       map[string]int
	predicates []string
}

// ViewUse is one use of a view, in the query of the view Via unless it is 0.
type ViewUse struct {
	Relation *Relation
	Via      uint32
	// Columns are those that are read, by their places.
	Columns []int
	// Target says that rows are written through it: no right to read is needed for that.
	Target bool
}

// UsedColumn is a column of a Use.
type UsedColumn struct {
	Index int
	Name  string
	// Added says that the statement does not name it, so that no right to read it is needed: it
	// is there to match rows.
	Added bool
}

// OutputColumn is a column of a result.
type OutputColumn struct {
	Name     string
	Type     Type
	TableOID uint32
	AttNum   int16
	// Collation is its collation, 0 for the default.
	Collation uint32
	// Record are the types of the fields of a record, if it is sent in binary; see
	// encode.Column.
	Record string
}

// Effect is a call with constant arguments that acts on the server.
type Effect struct {
	Kind EffectKind
	// Args are those of an EffectCall of the function Name, and of set_config where they are not
	// constants: Name is then "" unless it is one.
	Args []EffectArg
	// Name, Value and Local are those of set_config(name, value, is_local).
	Name, Value string
	Local       bool
	// Seconds is what pg_sleep waits.
	Seconds float64
	// PID is the session of pg_cancel_backend and pg_terminate_backend, unless Rows have those
	// of all rows of the query, with how long to wait as the second column if there is one.
	// SignalList then makes what takes the place of Mark.
	PID  uint32
	Rows *Analysis
	call *pg.FuncCall
	// Sequence, Number and Local are those of setval(sequence, value, is_called); nextval and
	// currval have the first.
	Sequence *Relation
	Number   int64
	// Mark stands in Analysis.SQL for the call's result, "" when it has none.
	Mark string
}

// EffectKind says what an Effect does.
type EffectKind uint8

// The effects.
const (
	EffectSetConfig EffectKind = iota + 1
	EffectSleep
	EffectCancel
	EffectTerminate
	// EffectCall is a call of a function that the session does itself; EffectChannels the array
	// of pg_listening_channels().
	EffectCall
	EffectChannels
	// EffectReload is pg_reload_conf().
	EffectReload
	// The functions of sequences.
	EffectNextval
	EffectCurrval
	EffectLastval
	EffectSetval
)

// Analyze analyses a SELECT, VALUES or TABLE statement. params are the parameter
// types that the client declared, 0 for open ones. The error is a *pgerr.Error
// with its position.
func Analyze(p *Parsed, params []uint32, env *Env) (*Analysis, error) {
	sel := p.Node.GetSelectStmt()
	if sel == nil {
		return nil, unsupported("cannot analyze this statement")
	}
	return AnalyzeSelect(p.SQL, sel, params, env)
}

// AnalyzeSelect analyses a query that is part of a statement (EXPLAIN, COPY,
// DECLARE); sql is the whole text, for positions.
func AnalyzeSelect(sql string, sel *pg.SelectStmt, params []uint32, env *Env) (*Analysis, error) {
	if st, err := staged(sql, sel, params, env); st != nil || err != nil {
		return st, err
	}
	a := &analyzer{env: env, sql: sql, params: append([]uint32(nil), params...), signals: signals(sel)}
	q, err := a.query(sel, nil)
	if err != nil {
		return nil, err
	}
	out, err := a.finish(q)
	if err != nil {
		return nil, err
	}
	if out.Params, err = a.decidedParams(); err != nil {
		return out, err
	}
	return out, signalRows(sql, sel, out, env)
}

// decidedParams are the types of the parameters, each of which must have one by now.
func (a *analyzer) decidedParams() ([]uint32, error) {
	for i, t := range a.params {
		if t == 0 {
			return nil, pgerr.New(codes.IndeterminateDatatype, "could not determine data type of parameter $%d", i+1)
		}
	}
	return a.params, nil
}

// analyzer is the state of one analysis; used once.
type analyzer struct {
	env       *Env
	sql       string
	params    []uint32
	seenParam map[int]bool
	uses      []*Use
	views     []*ViewUse
	via       uint32 // the view whose query is analysed
	effects   []Effect
	signals   []*pg.FuncCall
	locks     []RowLock
	// locking are the clauses of the query whose FROM is analysed; inherited those that the
	// next query takes over.
	locking   *locking
	inherited []*pg.LockingClause
	// nullable counts the outer joins around a part of FROM that may leave it out; rowNames are the
	// parts of which rows are named as values.
	nullable int
	rowNames map[string]bool
	// spread are the arguments of the next call when they are no nodes of their own.
	spread  []expr
	aliases int
	depth   int
	// colls are the collations of the expressions that are analysed, from the outermost.
	colls []collFrame
	// maybe counts what is around the expression that is analysed and need not compute it.
	maybe int
	// truths are subqueries that are as good false as unknown; see onlyTruth.
	truths map[*pg.SubLink]bool
	// modifications are the queries of WITH that write.
	modifications map[*pg.CommonTableExpr]*modification
	// record is set while a view is defined.
	record *recorded
	// fold says that literals are to be settled: their texts become ones that mean the same
	// in every session.
	fold bool
	// styled is what style returns, once it has, input what reading does; canonical says
	// that values are stored.
	styled    *string
	input     *encode.Input
	canonical bool
	// types are those of expressions that were analysed, nil when nobody asks.
	types map[*pg.Node]Type
}

// maxDepth bounds the nesting of a statement.
const maxDepth = 400

func (a *analyzer) enter() error {
	a.depth++
	if a.depth > maxDepth {
		return pgerr.New(codes.StatementTooComplex, "stack depth limit exceeded").
			WithHint("Nest the statement less deeply.")
	}
	return nil
}

func (a *analyzer) leave() { a.depth-- }

// alias makes a name that is unique in the statement.
func (a *analyzer) alias(hint string) string {
	a.aliases++
	return fmt.Sprintf("%s_%d", hint, a.aliases)
}

// errAt gives an error a position, unless it has one.
func (a *analyzer) errAt(loc int32, err error) error {
	e, ok := pgerr.As(err)
	if !ok || e.Position > 0 || loc < 0 {
		return err
	}
	return e.WithPosition(charPosition(a.sql, loc))
}

// finish casts the output columns to the engine types of their announced types and
// prints the statement.
func (a *analyzer) finish(q *query) (*Analysis, error) {
	out := &Analysis{Effects: a.effects, Locks: a.locks}
	for i := range q.targets {
		t := &q.targets[i]
		e := t.expr
		if e.undecided() {
			d, err := a.coerce(e, plain(OIDText), implicit)
			if err != nil {
				return nil, err
			}
			d.name = e.name
			e = d
		}
		c := OutputColumn{Name: t.name, Type: announced(e.typ), Collation: e.coll.column()}
		if e.col != nil {
			c.TableOID, c.AttNum = e.col.tableOID, e.col.attNum
		}
		sql, err := a.outputIn(e, &c, i < len(a.env.Binary) && a.env.Binary[i] == 1)
		out.Columns = append(out.Columns, c)
		if err != nil {
			return nil, a.errAt(e.loc, err)
		}
		t.expr = e
		t.expr.sql = sql
	}
	sql, err := a.regArrays(q)
	if err != nil {
		return nil, err
	}
	out.SQL = sql
	out.Uses, out.Views = a.uses, a.views
	for _, u := range a.uses {
		u.close()
	}
	return out, nil
}

// outputIn renders an output column in a format.
func (a *analyzer) outputIn(e expr, c *OutputColumn, binary bool) (string, error) {
	switch {
	case !binary || e.text:
	case regCatalog[e.typ.OID].relation != "" && (e.col == nil || !e.col.stored):
		return "CAST(" + e.sql + " AS VARCHAR)", nil
	case e.typ.OID == OIDRecord:
		c.Record = recordFields(e)
		a.canonical = true
		defer func() { a.canonical = false }()
	}
	return a.output(e)
}

// output renders an output column; object id aliases show names.
func (a *analyzer) output(e expr) (string, error) {
	if cat, ok := regCatalog[e.typ.OID]; ok {
		if _, found := a.env.Resolver.Relation("pg_catalog", cat.relation); !found && cat.name != "" {
			return e.sql, nil
		}
		return a.regText(e, cat.relation, cat.oid, cat.name)
	}
	if e.typ.OID == OIDJSONPath {
		return a.defaultText(e)
	}
	stored := e.text || e.col != nil && e.col.stored // and so what its relation makes of it
	if ElemOf(e.typ.OID) == OIDRegtype && !stored {
		return "list_transform(" + e.sql + ", lambda w: " + a.env.typeText("w") + ")", nil
	}
	sql, err := a.outputSQL(e)
	return a.styledSpan(e.typ.OID, sql), err
}

// outputSQL makes sure that what the engine returns is what is announced.
func (a *analyzer) outputSQL(e expr) (string, error) {
	if e.typ.OID == OIDRecord {
		return a.recordText(e)
	}
	if ElemOf(e.typ.OID) == OIDRecord {
		return a.defaultText(e)
	}
	if e.text || e.col != nil && e.col.stored {
		return e.sql, nil
	}
	eng := e.typ.engineType()
	switch {
	case e.typ.OID == OIDNumeric && eng == "":
		return e.sql, nil
	case eng == "" || eng == "VARCHAR" && lookupType(e.typ.OID).engine == "VARCHAR" && !e.con:
		return e.sql, nil
	}
	return "CAST(" + e.sql + " AS " + eng + ")", nil
}

func (u *Use) close() {
	if len(u.Columns) == 0 {
		i := 0
		if len(u.Relation.Key) > 0 {
			i = u.Relation.Key[0]
		}
		if len(u.Relation.Columns) > 0 {
			u.add(i)
		}
	}
	for _, k := range u.Relation.Key {
		u.add(k) // the rows of the log are matched by key
	}
	for i := range u.Relation.Columns {
		if u.Relation.WholeRow {
			u.add(i) // the same
		}
	}
	u.KeyPredicate = strings.Join(u.predicates, " AND ")
}

// add marks a column as used that the statement does not name.
func (u *Use) add(i int) {
	if _, ok := u.names[i]; !ok {
		u.column(i)
		u.Columns[u.names[i]].Added = true
	}
}

// column returns the name of a relation's column in the SQL, marking it as used.
// Names that differ only in case, which the engine cannot tell apart, get a number.
func (u *Use) column(i int) string {
	if at, ok := u.names[i]; ok {
		u.Columns[at].Added = false
		return u.Columns[at].Name
	}
	name := u.Relation.Columns[i].Name
	low := strings.ToLower(name)
	if n := u.seen[low]; n > 0 {
		name = fmt.Sprintf("%s~%d", name, n)
	}
	u.seen[low]++
	u.names[i] = len(u.Columns)
	u.Columns = append(u.Columns, UsedColumn{Index: i, Name: name})
	return name
}
