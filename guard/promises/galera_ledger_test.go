package promises_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
)

// A Page has the operations that were written to it, in their order, each with a space behind it.
type Page struct {
	ID      string `gorm:"primaryKey;size:32"`
	Ops     string `gorm:"type:mediumtext"`
	Version dbguard.Version
}

// kinds are the kinds of operations in a ledger.
var kinds = []string{"insert", "update", "once", "crew"}

// A ledger keeps what callers were told of their operations, each of which has a name of its own
// and is an order, or an entry of a page.
type ledger struct {
	mu   sync.Mutex
	told map[string]map[string]string // by kind and name: done, unknown or failed
	done map[string][]string          // those of a page that were reported as done
	miss map[string]map[string]bool   // by page: done operations that a later one did not read
	more map[string]int               // by kind: repeats of a done operation that ran it again
}

func newLedger() *ledger {
	l := &ledger{told: make(map[string]map[string]string), done: make(map[string][]string), miss: make(map[string]map[string]bool), more: make(map[string]int)}
	for _, kind := range kinds {
		l.told[kind] = make(map[string]string)
	}
	return l
}

// tell notes the last answer to an operation.
func (l *ledger) tell(kind, name, page string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
		l.told[kind][name] = "done"
		if page != "" {
			l.done[page] = append(l.done[page], name)
		}
	case errors.Is(err, guard.ErrUnknown):
		l.told[kind][name] = "unknown"
	default:
		l.told[kind][name] = "failed"
	}
}

// again notes that a done operation was executed again.
func (l *ledger) again(kind string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.more[kind]++
}

// due returns what an operation on a page has to read.
func (l *ledger) due(page string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.done[page])
}

// read notes which of the due operations are missing in what was read.
func (l *ledger) read(page, ops string, due []string) {
	there := entries(ops)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range due {
		if there[name] == 0 {
			if l.miss[page] == nil {
				l.miss[page] = make(map[string]bool)
			}
			l.miss[page][name] = true
		}
	}
}

// entries returns how often a page has each operation.
func entries(ops string) map[string]int {
	all := make(map[string]int)
	for name := range strings.FieldsSeq(ops) {
		all[name]++
	}
	return all
}

// A sum is what became of the operations of a kind.
type sum struct {
	done, unknown, failed int
	lost                  int // done, and not there
	twice                 int
	denied                int // failed, and there
	again                 int // done, and executed again by a repeat
}

func (s sum) String() string {
	return fmt.Sprintf("%d done, %d unknown, %d failed; lost %d, twice %d, failed but there %d, executed again %d",
		s.done, s.unknown, s.failed, s.lost, s.twice, s.denied, s.again)
}

// judge compares the ledger with what the database has. stale counts operations that a later one
// did not read, though they are there.
func (l *ledger) judge(db *gorm.DB) (sums map[string]sum, stale int, err error) {
	there, err := found(db)
	if err != nil {
		return nil, 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	sums = make(map[string]sum)
	for kind, told := range l.told {
		s := sum{again: l.more[kind]}
		for name, answer := range told {
			s.add(answer, there[name])
		}
		sums[kind] = s
	}
	for _, missing := range l.miss {
		for name := range missing {
			stale += min(there[name], 1)
		}
	}
	return sums, stale, nil
}

func (s *sum) add(answer string, n int) {
	if n > 1 {
		s.twice++
	}
	switch answer {
	case "done":
		s.done++
		if n == 0 {
			s.lost++
		}
	case "unknown":
		s.unknown++
	case "failed":
		s.failed++
		if n > 0 {
			s.denied++
		}
	}
}

// found returns how often a database has each operation.
func found(db *gorm.DB) (map[string]int, error) {
	var orders []string
	var pages []Page
	err := errors.Join(db.Model(&Order{}).Pluck("no", &orders).Error, db.Find(&pages).Error)
	all := make(map[string]int)
	for _, no := range orders {
		all[no]++
	}
	for _, p := range pages {
		maps.Copy(all, entries(p.Ops))
	}
	return all, err
}
