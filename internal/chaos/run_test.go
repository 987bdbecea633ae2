package chaos_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/notify"
)

// A run is all that the oracle needs. It is kept in a folder when the test fails, so
// that it can be judged again.
type run struct {
	head    head
	records []*record // of each worker
	faults  []fault
	rows    rows
	outside outside
	events  []notify.Event // in the store of guard-monitor
}

// head says what run it was.
type head struct {
	Database string
	Seed     uint64

	Transfers bool // and nothing else, under few faults
}

// rows are what the workers left in the database.
type rows struct {
	Orders    []Order
	Claims    []Claim
	Counters  []Counter
	Stamped   []Stamped
	Halves    []Half
	Items     []Item
	Sales     []Sale
	Accounts  []Account
	Transfers []Transfer
	Stocks    []Stock
	Receipts  []Receipt
	Tallies   []Tally
	Services  []Service
	Spoils    []Spoil
	Depots    []Depot
	Parcels   []Parcel
	Arrivals  []Arrival
	Tills     []Till
	Payments  []Payment
}

// The files of a run: one journal of each worker beside the others.
const (
	journalExt = ".journal.gz"
	faultsFile = "faults.json"
	headFile   = "run.json"
	rowsFile   = "rows.json"
	eventsFile = "events.json"
	outFile    = "outside.json"
	planFile   = "plan.txt" // which nobody reads but people
)

// readRows reads the rows and writes them to the folder of t.
func readRows(t *report, db *gorm.DB) (r rows) {
	t.Helper()
	r, err := findRows(db)
	if err != nil {
		t.Fatal(err)
	}
	t.keepJSON(rowsFile, r)
	return r
}

func findRows(db *gorm.DB) (r rows, err error) {
	for _, found := range []any{&r.Orders, &r.Claims, &r.Counters, &r.Stamped, &r.Halves, &r.Items, &r.Sales, &r.Accounts, &r.Transfers, &r.Stocks, &r.Receipts, &r.Tallies, &r.Services, &r.Spoils, &r.Depots, &r.Parcels, &r.Arrivals, &r.Tills, &r.Payments} {
		if err := db.Order("id").Find(found).Error; err != nil {
			return rows{}, err
		}
	}
	return r, nil
}

// loadRun reads a run that was kept in dir.
func loadRun(dir string) (run, error) {
	var r run
	journals, err := filepath.Glob(filepath.Join(dir, "*"+journalExt))
	if err != nil {
		return run{}, err
	}
	for _, path := range journals {
		rec, err := loadJournal(path)
		if err != nil {
			return run{}, err
		}
		r.records = append(r.records, rec)
	}
	if r.faults, err = scanFile[fault](filepath.Join(dir, faultsFile)); err != nil {
		return run{}, err
	}
	heads, err := scanFile[head](filepath.Join(dir, headFile))
	if err != nil {
		return run{}, err
	}
	if len(heads) > 0 {
		r.head = heads[0]
	}
	found, err := scanFile[rows](filepath.Join(dir, rowsFile))
	if err != nil {
		return run{}, err
	}
	if len(found) > 0 {
		r.rows = found[0]
	}
	out, err := scanFile[outside](filepath.Join(dir, outFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // a run of before it was kept
		return run{}, err
	}
	if len(out) > 0 {
		r.outside = out[0]
	}
	r.events, err = scanFile[notify.Event](filepath.Join(dir, eventsFile))
	return r, err
}

func scanFile[T any](path string) ([]T, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return slices.Collect(scan[T](f)), nil
}

// scan reads values in JSON, one on each line. A line that was cut off, as the last
// one of a worker that was killed may be, is skipped.
func scan[T any](r io.Reader) iter.Seq[T] {
	return func(yield func(T) bool) {
		lines := bufio.NewReader(r)
		for {
			text, err := lines.ReadBytes('\n')
			var v T
			if json.Unmarshal(text, &v) == nil && !yield(v) || err != nil {
				return
			}
		}
	}
}

// TestRunIsKept checks that a run is judged again by what it was.
func TestRunIsKept(t *testing.T) {
	lines := map[string][]line{"a": story("a.0", "A", 10, 12, 20, 21, "freed"), "b": story("b.0", "B", 30, 32, 40, 41, "gone")}
	want := run{
		head:    head{Database: "mysql", Seed: 7},
		records: recordsOf(map[string][]line{"a": lines["a"]}),
		faults:  []fault{{wipe, "k", 33, 34}, {kill, "a", 50, 51}},
		rows:    rows{Orders: []Order{{ID: 1, No: "7", By: "a.0"}}, Counters: []Counter{{ID: 1, N: 2, Version: 3}}},
		outside: outside{Charges: []charge{{No: 1, ID: "a", Receipt: "charge 1"}}, Open: []openCall{{Key: "k", Undecided: true}}},
		events: []notify.Event{{
			ID: "1", Service: "chaos", Instance: "a", Verdict: notify.VerdictOverlap, Outcome: notify.OutcomeRefused,
			Key: "k", CaughtAt: time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC), Count: 1,
		}},
	}
	dir := t.TempDir()
	want.records = append(want.records, recordsOf(map[string][]line{"b": lines["b"]})...)
	for worker, lines := range lines {
		file := newJournalFile(&report{T: t, logs: dir}, worker)
		for _, l := range lines {
			if err := json.NewEncoder(file).Encode(l); err != nil {
				t.Fatal(err)
			}
		}
		file.close(t)
	}
	keep(t, filepath.Join(dir, headFile), want.head)
	keep(t, filepath.Join(dir, faultsFile), want.faults...)
	keep(t, filepath.Join(dir, rowsFile), want.rows)
	keep(t, filepath.Join(dir, outFile), want.outside)
	keep(t, filepath.Join(dir, eventsFile), want.events...)
	got, err := loadRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// keep writes values as scan reads them, and the beginning of another one.
func keep[T any](t *testing.T, path string, values ...T) {
	t.Helper()
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	for _, v := range values {
		if err := encoder.Encode(v); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(path, []byte(text.String()+`{"t":1`), 0o600); err != nil {
		t.Fatal(err)
	}
}
