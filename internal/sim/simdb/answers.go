package simdb

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A question is a statement that asks about the server, by how it begins, spaces aside. It
// reads no rows.
type question struct {
	begins string
	answer answer
}

type answer func(s *session, args []any) (*result, error)

// answerTo returns how a statement is answered; nil if it is no question.
func (db *Database) answerTo(sql string) answer {
	questions := myAnswers
	if db.postgres() {
		questions = pgAnswers
	}
	text := strings.Join(strings.Fields(sql), " ")
	if id, ok := strings.CutPrefix(text, livesMy); ok && !db.postgres() {
		return lives(id)
	}
	if m := sleepsMy.FindStringSubmatch(text); m != nil {
		return sleeps(m[1])
	}
	if m := commitsMy.FindStringSubmatch(text); m != nil {
		return commits(m[1])
	}
	for _, q := range questions {
		if strings.HasPrefix(text, q.begins) {
			return q.answer
		}
	}
	return nil
}

func table1(columns string, rows ...[]any) (*result, error) {
	return &result{columns: strings.Split(columns, ","), rows: rows}, nil
}

// livesMy asks whether there is a session, by its number.
const livesMy = "SELECT COUNT(*) AS lives FROM information_schema.processlist WHERE id = "

func lives(id string) answer {
	number, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return nil
	}
	return func(s *session, _ []any) (*result, error) {
		n := int64(0)
		if s.db.sessionOf(number) != nil {
			n = 1
		}
		return table1("lives", []any{n})
	}
}

// Two questions before a session is ended, and before what it shows is believed: whether it
// sleeps and whether it is another client's, and whether it is in a COMMIT.
var (
	sleepsMy  = regexp.MustCompile(`^SELECT COUNT\(\*\) AS lives, .*FROM information_schema.processlist WHERE id = (\d+)$`)
	commitsMy = regexp.MustCompile(`^SELECT COUNT\(\*\) AS commits FROM information_schema.processlist WHERE (?:id = (\d+)|TRUE) `)
)

func sleeps(id string) answer {
	number, _ := strconv.ParseInt(id, 10, 64)
	return func(s *session, _ []any) (*result, error) {
		found := s.db.sessionOf(number)
		return table1("lives,sleeps,strange", []any{found != nil, found != nil && !found.busy, found != nil && found.busy && !found.commits})
	}
}

// commits looks at the session with a number, or at all of them.
func commits(id string) answer {
	number, _ := strconv.ParseInt(id, 10, 64)
	return func(s *session, _ []any) (*result, error) {
		flushes := slices.ContainsFunc(s.db.sessions, func(o *session) bool { return o.commits && (id == "" || o.id == number) })
		return table1("commits", []any{flushes})
	}
}

func none(*session, []any) (*result, error) { return &result{}, nil }

// facts says that a table has transactions, and nothing that writes other rows.
func facts(*session, []any) (*result, error) {
	return table1("transactional,triggers,alters,indirect,cascades,rewritten", []any{true, false, false, true, false, ""})
}

// indexes lists those of the table whose name is in the arguments, which have "" for a
// schema.
func indexes(s *session, args []any) (*result, error) {
	res, err := table1("name,col,prim,flaw")
	for _, a := range args {
		if t := s.db.tables[a.(string)]; t != nil {
			for _, i := range t.indexes {
				res.rows = append(res.rows, []any{i.name, t.columns[i.column].name, i.primary(), ""})
			}
			break
		}
	}
	return res, err
}
