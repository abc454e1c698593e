package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/postgres/published"
	"github.com/skipprd/skipprd/ingest/watch"
)

// publishedNow is how tables are published, for those who look later.
func publishedNow(ctx context.Context, conn *pgx.Conn, names []string, tables []ingest.SourceTable, version int) (map[uint32]string, error) {
	oids := make([]uint32, len(tables))
	for i, t := range tables {
		oids[i] = t.OID
	}
	now, err := published.Read(ctx, conn, version, names, oids)
	if err != nil {
		return nil, unavailable("look at publications", err)
	}
	out := make(map[uint32]string, len(now))
	for oid, t := range now {
		out[oid] = t.String()
	}
	return out, nil
}

// streamedNames are the publications that are streamed, none before there is a slot.
func (s *Source) streamedNames() []string {
	st, err := s.current()
	if err != nil {
		return nil
	}
	return st.Publications
}

// publicationsDigest is another text when publications that are streamed have changed.
func (s *Source) publicationsDigest(ctx context.Context, conn *pgx.Conn) (string, error) {
	st, err := s.current()
	if err != nil {
		return "", nil // nothing is streamed
	}
	digest, err := published.Digest(ctx, conn, serverVersion(conn), st.Publications)
	if err != nil {
		return "", unavailable("look at publications", err)
	}
	return digest, nil
}

// lookPublished finds tables of which changes may have been left out.
func (s *Source) lookPublished(ctx context.Context, conn *pgx.Conn, here []watch.Here, look *ingest.Look) error {
	st, err := s.current()
	if err != nil {
		return nil // nothing is streamed
	}
	now, err := published.Read(ctx, conn, serverVersion(conn), st.Publications, numbersOf(here))
	if err != nil {
		return unavailable("look at publications", err)
	}
	have := make([]publication, len(st.Publications))
	for i, name := range st.Publications {
		if have[i], err = readPublication(ctx, conn, name, serverVersion(conn)); err != nil {
			return err
		}
	}
	look.Published = map[uint32]string{}
	for _, h := range here {
		t, exists := look.Known[h.OID]
		if !exists {
			continue
		}
		if t.Gap, err = gapOf(have, st, described(look.Found, h, t, st), h, now[h.OID], serverVersion(conn)); err != nil {
			return err
		}
		look.Known[h.OID] = t
		if t.Gap == nil {
			look.Published[h.OID] = now[h.OID].String()
		}
	}
	return nil
}

// described is a table that is here as it is to be published, also when it is not selected any more,
// or could not be taken in as it is.
func described(found []ingest.SourceTable, h watch.Here, now watch.There, st *state) ingest.SourceTable {
	i := slices.IndexFunc(found, func(t ingest.SourceTable) bool { return t.OID == h.OID && t.Unsupported == "" })
	if i >= 0 {
		return found[i]
	}
	return ingest.SourceTable{OID: h.OID, Schema: now.Schema, Name: now.Name, Parts: h.Parts, Filter: st.Filters[h.OID]}
}

// gapOf says why changes of a table may have been left out; nil when none were.
func gapOf(have []publication, st *state, t ingest.SourceTable, h watch.Here, now published.Table, version int) (*watch.Gap, error) {
	if now.Unlogged {
		return &watch.Gap{
			Reason: "the table is unlogged at the source: what is written to it cannot be streamed",
			Hint:   fmt.Sprintf("At the source: ALTER TABLE %s SET LOGGED; then it is copied anew by itself.", quoteIdent(t.Schema, t.Name)),
		}, nil
	}
	main, inserts := have[0], have[len(have)-1]
	from, publish := main, publishChanges
	if h.Keyless {
		from, publish = inserts, publishInserts
	}
	alone := []ingest.SourceTable{t}
	of := func(p publication, publish string) bool {
		return p.exists && p.publishes(publish) && len(p.lacks(alone)) == 0
	}
	if !of(main, publishChanges) && !(h.Keyless && (of(main, publishInserts) || of(inserts, publishInserts))) {
		gap := &watch.Gap{Reason: from.without(t)}
		if from.exists && !slices.Contains(st.Owned, from.name) {
			gap.Hint = fmt.Sprintf("At the source (at its primary, if it is a standby), as the publication's owner: %s Then it is copied anew by itself.",
				strings.Join(from.completion(publish, alone, version), " "))
		}
		return gap, nil
	}
	if h.Published == "" {
		return nil, nil
	}
	was, err := published.Parse(h.Published)
	if err != nil || now.Follows(was) {
		return nil, err
	}
	return &watch.Gap{Reason: fmt.Sprintf("publication %s was altered at the source, and changes may have been left out meanwhile", from.name)}, nil
}

// publishes says whether p sends operations.
func (p publication) publishes(operations string) bool {
	if operations == publishChanges {
		return p.updates
	}
	return p.inserts
}

// completion is the SQL that makes p one that will do for tables.
func (p publication) completion(publish string, tables []ingest.SourceTable, version int) (sql []string) {
	quoted := quoteIdent(p.name)
	if set := p.setting(publish, version); set != "" {
		sql = append(sql, set+";")
	}
	p.root = true
	lacking := p.lacks(tables)
	partly := slices.DeleteFunc(slices.Clone(lacking), func(t ingest.SourceTable) bool { return !p.names(t) })
	if len(partly) > 0 {
		sql = append(sql, fmt.Sprintf("ALTER PUBLICATION %s DROP TABLE %s;", quoted, list(unfiltered(partly))))
	}
	if len(lacking) > 0 {
		sql = append(sql, fmt.Sprintf("ALTER PUBLICATION %s ADD TABLE %s;", quoted, list(lacking)))
	}
	return sql
}

// setting is the SQL that gives p the options that it lacks, "" when it has all.
func (p publication) setting(publish string, version int) string {
	var options []string
	if !p.publishes(publish) {
		options = append(options, "publish = "+quoteLiteral(publish))
	}
	if version >= versionRoot && !p.root {
		options = append(options, "publish_via_partition_root = true")
	}
	if version >= versionGenerated && !p.stored {
		options = append(options, "publish_generated_columns = stored")
	}
	if len(options) == 0 {
		return ""
	}
	return fmt.Sprintf("ALTER PUBLICATION %s SET (%s)", quoteIdent(p.name), strings.Join(options, ", "))
}

// without says, a clause, what p has not of a table.
func (p publication) without(t ingest.SourceTable) string {
	switch {
	case !p.exists:
		return fmt.Sprintf("publication %s is gone at the source", p.name)
	case !p.names(t):
		return fmt.Sprintf("publication %s does not have the table any more", p.name)
	case !p.has(t):
		return fmt.Sprintf("publication %s does not have all columns of the table any more", p.name)
	case !p.filtersAlike(t):
		return fmt.Sprintf("publication %s has other rows of the table than it is to have", p.name)
	case p.scatters(t):
		return fmt.Sprintf("publication %s sends changes of the table as those of its partitions", p.name)
	}
	return fmt.Sprintf("publication %s does not publish all operations any more", p.name)
}

// mend has p send what it is to send, and changes of partitions as those of their tables, if it is
// ours. Of one that somebody else has made it refuses the tables that lack something.
func (p *publication) mend(ctx context.Context, conn *pgx.Conn, st *state, publish string, tables []ingest.SourceTable, version int,
	refused *map[uint32]*ingest.TableError,
) error {
	publishes := p.publishes(publish)
	gathers := version < versionRoot || !slices.ContainsFunc(tables, p.scatters)
	if len(tables) == 0 || publishes && gathers {
		return nil
	}
	sql := p.setting(publish, version)
	if slices.Contains(st.Owned, p.name) {
		if err := run(ctx, conn.PgConn(), sql); err != nil {
			return publicationError(p.name, sql, err)
		}
	} else {
		for _, t := range tables {
			why := fmt.Sprintf("publication %s does not publish all operations", p.name)
			if publishes {
				if !p.scatters(t) {
					continue
				}
				why = fmt.Sprintf("publication %s sends its changes as those of its partitions", p.name)
			}
			refuse(refused, t, &ingest.TableError{
				Reason: why, Hint: "At the source, as its owner: " + sql + "; then here: ALTER PIPELINE … RESYNC TABLE …;",
			})
		}
	}
	p.root = true // what is refused is not to be added
	return nil
}

// partly refuses a table that p, which somebody else has made, has only in part.
func (p publication) partly(st *state, publish string, t ingest.SourceTable, version int, refused *map[uint32]*ingest.TableError) bool {
	if slices.Contains(st.Owned, p.name) || !p.names(t) {
		return false // it is added whole
	}
	refuse(refused, t, &ingest.TableError{
		Reason: p.without(t),
		Hint: fmt.Sprintf("At the source, as its owner: %s Then here: ALTER PIPELINE … RESYNC TABLE …;",
			strings.Join(p.completion(publish, []ingest.SourceTable{t}, version), " ")),
	})
	return true
}
