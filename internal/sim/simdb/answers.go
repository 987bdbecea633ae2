package simdb

import "strings"

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
