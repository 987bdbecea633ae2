package cost_test

import (
	"testing"

	"github.com/belaygo/belay/internal/teststack"
)

// BenchmarkOperations is for profiles, of one caller on MariaDB:
//
//	go test -run '^$' -bench 'Operations/Apply.Insert.$' -benchtime 2000x -memprofilerate 1 -memprofile mem.out ./internal/cost
func BenchmarkOperations(b *testing.B) {
	s := open(b, teststack.MySQL(b), nil)
	if err := s.db.Create(&Stock{ID: 1, Left: 1_000_000_000}).Error; err != nil {
		b.Fatal(err)
	}
	for _, o := range operations {
		b.Run(o.name, func(b *testing.B) {
			b.ReportAllocs()
			nos := numbers(b, o)
			for b.Loop() {
				if err := o.do(b.Context(), s, nos()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
