package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
)

const maxSilences = 1000 // active and to come

// AddSilence stores a silence that is valid and returns its ID.
func (s *Store) AddSilence(ctx context.Context, silence incident.Silence) (int64, error) {
	if err := silence.Validate(); err != nil {
		return 0, err
	}
	now := time.Now()
	res, err := s.write.ExecContext(ctx, `
		INSERT INTO silences (matchers, starts_at, ends_at, author, comment, created_at)
		SELECT ?, ?, ?, ?, ?, ? WHERE (SELECT count(*) FROM silences WHERE ends_at > ?) < ?`,
		document{silence.Matchers}, micros(silence.Start), micros(silence.End), silence.Author, silence.Comment, micros(now),
		micros(now), maxSilences)
	if err != nil {
		return 0, fmt.Errorf("insert silence: %w", err)
	}
	if err := found(res); err != nil {
		return 0, errors.New("store: too many silences")
	}
	return res.LastInsertId()
}

// EndSilence ends a silence at once.
func (s *Store) EndSilence(ctx context.Context, id int64, by string, at time.Time) error {
	res, err := s.write.ExecContext(ctx,
		`UPDATE silences SET ends_at = ?, ended_by = ? WHERE id = ? AND ends_at > ?`, micros(at), by, id, micros(at))
	if err != nil {
		return fmt.Errorf("end silence: %w", err)
	}
	return found(res)
}

// activeSilences returns those that hold at the time, the newest first.
func (s *Store) activeSilences(ctx context.Context, at time.Time) ([]incident.Silence, error) {
	return s.silences(ctx, ` WHERE ends_at > ?1 AND starts_at <= ?1 ORDER BY id DESC LIMIT ?2`, micros(at), maxSilences)
}

// AllSilences returns the silences of any time, the newest first.
func (s *Store) AllSilences(ctx context.Context, p Page) ([]incident.Silence, error) {
	clause, args := p.clause()
	return s.silences(ctx, clause, args...)
}

func (s *Store) silences(ctx context.Context, clause string, args ...any) ([]incident.Silence, error) {
	return collect(ctx, s, "silences", func(s *incident.Silence) []any {
		return []any{
			&s.ID, document{&s.Matchers}, instant{&s.Start}, instant{&s.End}, &s.Author, &s.Comment, instant{&s.CreatedAt}, &s.EndedBy,
		}
	}, `SELECT id, matchers, starts_at, ends_at, author, comment, created_at, ended_by FROM silences`+clause, args...)
}
