package store

import (
	"context"
	"database/sql"
	"maps"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/text"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
)

// TimelineFilter chooses entries. Zero fields choose all.
type TimelineFilter struct {
	Cluster  string
	Shard    string // the entries of this shard only
	Node     string // as node or as peer
	Kinds    []watch.Kind
	From, To time.Time // when they were seen: From ≤ At < To
	Before   int64     // those with a smaller ID: the last of the page before
	Limit    int       // default DefaultRows, at most MaxRows
}

// AddEntries stores entries, all or none, and sets their IDs.
func (s *Store) AddEntries(ctx context.Context, entries []watch.Entry) error {
	return s.in(ctx, "insert timeline", func(tx *sql.Tx) error {
		for i := range entries {
			id, err := insertEntry(ctx, tx, entries[i])
			if err != nil {
				return err
			}
			entries[i].ID = id
		}
		return nil
	})
}

func insertEntry(ctx context.Context, tx *sql.Tx, e watch.Entry) (int64, error) {
	names := maps.Clone(e.Names)
	for name, value := range names {
		names[name] = text.Clip(value, maxSentence)
	}
	res, err := tx.ExecContext(ctx, `
		INSERT INTO timeline (at, since, kind, cluster, shard, node, peer, names, numbers)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		micros(e.At), micros(e.Since), e.Kind, text.Clip(e.Cluster, MaxText), text.Clip(e.Shard, MaxText),
		text.Clip(e.Node, MaxText), text.Clip(e.Peer, MaxText), document{names}, document{e.Numbers})
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
}

// maxSentence bounds a text for people, and each of an entry's Names, in bytes.
const maxSentence = 2 << 10

// Timeline returns entries, the newest first.
func (s *Store) Timeline(ctx context.Context, f TimelineFilter) ([]watch.Entry, error) {
	var w where
	w.text("cluster = ?", f.Cluster)
	w.text("shard = ?", f.Shard)
	if f.Node != "" {
		w.add("(node = ? OR peer = ?)", f.Node, f.Node)
	}
	in(&w, "kind", f.Kinds)
	w.time("at >= ?", f.From)
	w.time("at < ?", f.To)
	if f.Before > 0 {
		w.add("id < ?", f.Before)
	}
	return s.entries(ctx, w.String()+` ORDER BY id DESC LIMIT ?`, append(w.args, limit(f.Limit))...)
}

const entryColumns = `id, at, since, kind, cluster, shard, node, peer, names, numbers`

func (s *Store) entries(ctx context.Context, clause string, args ...any) ([]watch.Entry, error) {
	return collect(ctx, s, "timeline", func(e *watch.Entry) []any {
		return []any{
			&e.ID, instant{&e.At}, instant{&e.Since}, &e.Kind, &e.Cluster, &e.Shard, &e.Node, &e.Peer,
			document{&e.Names}, document{&e.Numbers},
		}
	}, `SELECT `+entryColumns+` FROM timeline`+clause, args...)
}
