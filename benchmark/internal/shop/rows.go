package shop

import (
	"fmt"
	"io"
	"strconv"
)

// rowsOf makes a reader of the rows from first to last, in the format of LOAD DATA.
func rowsOf(first, last int64, row func(buf []byte, id int64) []byte) io.Reader {
	return &rows{next: first, last: last, row: row}
}

type rows struct {
	next, last int64
	row        func([]byte, int64) []byte
	buf, rest  []byte
}

const blockRows = 1000

func (r *rows) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		if r.next > r.last {
			return 0, io.EOF
		}
		r.buf = r.buf[:0]
		for n := 0; n < blockRows && r.next <= r.last; n++ {
			r.buf = r.row(r.buf, r.next)
			r.next++
		}
		r.rest = r.buf
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// OrderNo is the number of a seeded order. It sorts before those of any run.
func OrderNo(id int64) string { return fmt.Sprintf("A%011d", id) }

const items = 1000 // kinds of goods that seeded orders are for

func orderRow(buf []byte, id int64) []byte {
	buf = strconv.AppendInt(buf, id, 10)
	buf = append(buf, '\t')
	buf = append(buf, OrderNo(id)...)
	buf = append(buf, '\t')
	buf = strconv.AppendInt(buf, 1+id%items, 10)
	return append(buf, "\t1\t2026-01-01 00:00:00.000\n"...)
}

// Remaining is how many of an item a seeded stock row has.
func Remaining(id int64) int64 { return 1 + id%100 }

func stockRow(buf []byte, id int64) []byte {
	buf = strconv.AppendInt(buf, id, 10)
	buf = append(buf, "\titem "...)
	buf = strconv.AppendInt(buf, id, 10)
	buf = append(buf, '\t')
	buf = strconv.AppendInt(buf, Remaining(id), 10)
	return append(buf, "\t1\n"...)
}
