package simdb

import (
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

func none(*session, []any) (*result, error) { return &result{}, nil }

// facts says that a table has transactions, and nothing that writes other rows.
func facts(*session, []any) (*result, error) {
	return table1("transactional,triggers,alters,cascades", []any{true, false, false, false})
}

// indexes lists those of the table whose name is in the arguments, which have "" for a
// schema.
func indexes(s *session, args []any) (*result, error) {
	res, err := table1("name,col,partial")
	for _, a := range args {
		if t := s.db.tables[a.(string)]; t != nil {
			for _, i := range t.indexes {
				res.rows = append(res.rows, []any{i.name, t.columns[i.column].name, false})
			}
			break
		}
	}
	return res, err
}
