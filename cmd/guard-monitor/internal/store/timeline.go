package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
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
	err := s.in(ctx, func(tx *sql.Tx) error {
		for i := range entries {
			id, err := insertEntry(ctx, tx, entries[i])
			if err != nil {
				return err
			}
			entries[i].ID = id
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("insert timeline: %w", err)
	}
	return nil
}

func insertEntry(ctx context.Context, tx *sql.Tx, e watch.Entry) (int64, error) {
	names := maps.Clone(e.Names)
	for name, value := range names {
		names[name] = text.Clip(value, maxSentence)
	}
	encodedNumbers, err := encode(e.Numbers)
	encodedNames, err2 := encode(names)
	if err := errors.Join(err, err2); err != nil {
		return 0, err
	}
	res, err := tx.ExecContext(ctx, `
		INSERT INTO timeline (at, since, kind, cluster, shard, node, peer, names, numbers)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		micros(e.At), micros(e.Since), e.Kind, text.Clip(e.Cluster, MaxText), text.Clip(e.Shard, MaxText),
		text.Clip(e.Node, MaxText), text.Clip(e.Peer, MaxText), encodedNames, encodedNumbers)
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
	entries, err := collect(ctx, s.read, scanEntry,
		`SELECT `+entryColumns+` FROM timeline`+w.String()+` ORDER BY id DESC LIMIT ?`, append(w.args, limit(f.Limit))...)
	if err != nil {
		return nil, fmt.Errorf("read timeline: %w", err)
	}
	return entries, nil
}

const entryColumns = `id, at, since, kind, cluster, shard, node, peer, names, numbers`

func scanEntry(row scanner) (e watch.Entry, err error) {
	var at, since int64
	var names, numbers []byte
	err = row.Scan(&e.ID, &at, &since, &e.Kind, &e.Cluster, &e.Shard, &e.Node, &e.Peer, &names, &numbers)
	if err != nil {
		return e, err
	}
	e.At, e.Since = fromMicros(at), fromMicros(since)
	return e, errors.Join(json.Unmarshal(numbers, &e.Numbers), json.Unmarshal(names, &e.Names))
}
