package chaos_test

import (
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A journalFile keeps the journal of a worker, in a sixth of the space: a soak of two hours
// writes some 2 GB.
type journalFile struct {
	*gzip.Writer

	file *os.File
}

func newJournalFile(t *report, worker string) journalFile {
	t.Helper()
	file := t.file(worker + journalExt)
	w, err := gzip.NewWriterLevel(file, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	return journalFile{w, file}
}

func (f journalFile) close(t testing.TB) {
	t.Helper()
	if err := errors.Join(f.Close(), f.file.Close()); err != nil {
		t.Error(err)
	}
}

// loadJournal reads what a worker saw.
func loadJournal(path string) (*record, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	r := newRecord(strings.TrimSuffix(filepath.Base(path), journalExt))
	for l := range scan[line](text) {
		r.add(l)
	}
	return r, nil
}
